package report

import (
	"fmt"
	"slices"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
)

var probedColumns = []string{"STORAGE OF", "CLASS", "MEDIUM", "SYNCS/S", "SYNC P50", "P99", "P99.9", "MAX", "SECONDS"}

// probedStorage is a storage that variants are on, with what its probe found.
type probedStorage struct {
	variants []string
	medium   string
	probe    *v1alpha1.StorageProbeStatus
	// sync is the phase that says what the storage keeps up.
	sync v1alpha1.SyncFigures
}

// probedStorages are the storages of the variants in order, each once: variants that share a class, a node and a size
// share a probe.
func (r *Report) probedStorages() []probedStorage {
	var list []probedStorage
	for _, v := range r.Variants {
		if v.Storage == nil || len(v.Storage.Syncs) == 0 {
			continue
		}
		phase := v.Storage.Syncs[len(v.Storage.Syncs)-1]
		at := slices.IndexFunc(list, func(other probedStorage) bool {
			return other.medium == v.Subject.Medium && other.probe.StorageClassName == v.Storage.StorageClassName && other.sync == phase
		})
		if at < 0 {
			list = append(list, probedStorage{medium: v.Subject.Medium, probe: v.Storage, sync: phase})
			at = len(list) - 1
		}
		list[at].variants = append(list[at].variants, v.Name)
	}
	return list
}

func probedRows(list []probedStorage) [][]string {
	var rows [][]string
	for _, s := range list {
		rows = append(rows, []string{strings.Join(s.variants, ", "), s.probe.StorageClassName, orDash(s.medium), fmt.Sprint(s.sync.SyncsPerSecond),
			duration(s.sync.P50Micros), duration(s.sync.P99Micros), duration(s.sync.P999Micros), duration(s.sync.MaxMicros), fmt.Sprint(s.sync.DurationSeconds)})
	}
	return rows
}

// probedWords are the ratios of the media, the fastest being 1, and what stands out of each.
func probedWords(list []probedStorage) []string {
	if len(list) == 0 {
		return nil
	}
	var words []string
	fastest := slices.MinFunc(list, func(a, b probedStorage) int { return int(a.sync.P50Micros - b.sync.P50Micros) })
	for _, s := range list {
		if s.sync.P50Micros > fastest.sync.P50Micros && fastest.sync.P50Micros > 0 {
			words = append(words, fmt.Sprintf("A sync of %s (%s) takes %.1f times as long as one of %s (%s).", s.probe.StorageClassName, s.variants[0],
				float64(s.sync.P50Micros)/float64(fastest.sync.P50Micros), fastest.probe.StorageClassName, fastest.variants[0]))
		}
	}
	for _, s := range list {
		for _, finding := range s.probe.Findings {
			words = append(words, fmt.Sprintf("! %s of %s: %s", finding.Kind, s.probe.StorageClassName, finding.Message))
		}
	}
	return words
}
