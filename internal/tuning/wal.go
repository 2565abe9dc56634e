package tuning

import "fmt"

// defaultVolume is reckoned with where the size of the volume is not known.
const defaultVolume = 10 * gB

// wal settings (facts/postgres-ceph.md C2): the first change of a page after a checkpoint logs 8 kB,
// so fewer checkpoints mean fewer and shorter flushes at each commit.
func wal(in Input) []Setting {
	volume := in.VolumeBytes
	if volume <= 0 {
		volume = defaultVolume
	}
	// A quarter of the volume: WAL and data share it, and a full volume stops the database. The lower
	// bound is PostgreSQL's: twice wal_segment_size, with room for min_wal_size below it.
	maxSize := clamp(volume/4, 64*mB, 4*gB)
	minSize := clamp(maxSize/4, 32*mB, gB)
	compression, compressionReason := "on", "less WAL for a little CPU; lz4 comes with PostgreSQL 15"
	if in.Major >= 15 {
		compression, compressionReason = "lz4", "less WAL for very little CPU: full pages after a checkpoint make commits long"
	}
	return []Setting{
		server("max_wal_size", inMB(maxSize), fmt.Sprintf("a quarter of the volume of %s, at most 4GB: fewer checkpoints, fewer full pages in the WAL", inMB(volume))),
		server("min_wal_size", inMB(minSize), "a quarter of max_wal_size: recycled WAL files need no new blocks, which on network disks are slow to allocate"),
		server("checkpoint_timeout", "15min", "fewer full pages in the WAL than with 5min; recovery after a crash takes longer, for a small database seconds"),
		server("checkpoint_completion_target", "0.9", "checkpoints are written evenly, so that commits do not queue behind them"),
		server("wal_compression", compression, compressionReason),
		server("wal_level", "replica", "what base backups and standbys need; minimal saves nothing at a commit of a few rows"),
	}
}
