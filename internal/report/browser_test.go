package report

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The page as a real browser shows it: every figure has a size on the screen, nothing is written on the
// console, and no request leaves the file. A script that only the test's copy of the page has measures
// what is there and writes it into the document, which the browser prints.
func TestPageInARealBrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("there is no chromium: hack/install-packages.sh chromium installs Debian's, and make test-unit does it for you")
	}
	later := rising()
	later.Test.Name = "later"
	for name, page := range map[string]struct {
		of   *Report
		want string
	}{
		// Three plots of two tests with three drawings each, and three that draw one over the other.
		"two tests": {Merge(New(sample(540, true)), New(later)), "figures=21;drawn=21;phases=true;double=true;overflow=false;requests=0;" +
			"headings=Objectives, Before and after, Login, Dashboard, Figures, Causes, Where the time goes, Guards, PostgreSQL settings, Further figures"},
		"a comparison": {compared(), "figures=27;drawn=27;phases=false;double=true;overflow=false;requests=0;" +
			"headings=Variants, Ratios, Storage, Commits that wait, What each variant is, Every pair, local-strict: Login, local-strict: Dashboard ×8 parallel, " +
			"local-strict: Dashboard ×8 in sequence, ceph-strict: Login, ceph-strict: Dashboard ×8 parallel, ceph-strict: Dashboard ×8 in sequence, " +
			"ceph-relaxed: Login, ceph-relaxed: Dashboard ×8 parallel, ceph-relaxed: Dashboard ×8 in sequence"},
	} {
		t.Run(name, func(t *testing.T) {
			if seen := shownBy(t, browser, page.of); seen != page.want {
				t.Errorf("the browser shows\n%s\nnot\n%s", seen, page.want)
			}
		})
	}
}

// probeOfPage writes what is on the screen into the document.
const probeOfPage = `<script>addEventListener('load', () => {
  const shown = e => { const b = e.getBoundingClientRect(); return b.width > 1 && b.height > 1; };
  const figures = [...document.querySelectorAll('figure svg')];
  const wide = [...document.querySelectorAll('.stack i')].filter(e => e.getBoundingClientRect().width > 0).length;
  document.body.dataset.seen = [
    'figures=' + figures.filter(shown).length,
    'drawn=' + figures.filter(f => [...f.querySelectorAll('rect.bar, path.curve')].some(shown)).length,
    'phases=' + (wide > 0), 'double=' + shown(document.querySelector('.double')),
    'overflow=' + (document.documentElement.scrollWidth > innerWidth),
    'requests=' + performance.getEntriesByType('resource').length,
    'headings=' + [...new Set([...document.querySelectorAll('h2')].filter(shown).map(h => h.firstChild.textContent.trim()))].join(', ')].join(';');
});</script></body>`

// shownBy a browser of a report's page. What it writes on the console fails the test.
func shownBy(t *testing.T, browser string, r *Report) string {
	t.Helper()
	var page bytes.Buffer
	if err := WriteHTML(&page, r); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "report.html")
	if err := os.WriteFile(file, bytes.Replace(page.Bytes(), []byte("</body>"), []byte(probeOfPage), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	// The limit is only there for a browser that hangs.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--user-data-dir="+filepath.Join(folder, "profile"), "--enable-logging=stderr", "--window-size=1280,2000", "--dump-dom", "file://"+file)
	var dom, log bytes.Buffer
	command.Stdout, command.Stderr = &dom, &log
	if err := command.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, log.String())
	}
	seen := regexp.MustCompile(`data-seen="([^"]*)"`).FindStringSubmatch(dom.String())
	if seen == nil {
		t.Fatalf("the page was not shown:\n%s", log.String())
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, ":CONSOLE") {
			t.Errorf("the page wrote on the console: %s", line)
		}
	}
	return seen[1]
}
