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
	later := sample(840, false)
	later.Test.Name = "later"
	r := Merge(New(sample(540, true)), New(later))
	var page bytes.Buffer
	if err := WriteHTML(&page, r); err != nil {
		t.Fatal(err)
	}
	const probe = `<script>addEventListener('load', () => {
  const shown = e => { const b = e.getBoundingClientRect(); return b.width > 1 && b.height > 1; };
  const figures = [...document.querySelectorAll('figure svg')];
  const wide = [...document.querySelectorAll('.stack i')].filter(e => e.getBoundingClientRect().width > 0).length;
  document.body.dataset.seen = [
    'figures=' + figures.filter(shown).length,
    'drawn=' + figures.filter(f => [...f.querySelectorAll('rect.bar, path.curve')].some(shown)).length,
    'phases=' + (wide > 0), 'guards=' + [...document.querySelectorAll('h2')].filter(h => h.textContent.startsWith('Guards') && shown(h)).length,
    'double=' + shown(document.querySelector('.double')), 'overflow=' + (document.documentElement.scrollWidth > innerWidth),
    'requests=' + performance.getEntriesByType('resource').length].join(';');
});</script></body>`
	folder := t.TempDir()
	file := filepath.Join(folder, "report.html")
	if err := os.WriteFile(file, bytes.Replace(page.Bytes(), []byte("</body>"), []byte(probe), 1), 0o644); err != nil {
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
	// Three plots of two tests with three drawings each, and three that draw one over the other.
	if want := "figures=21;drawn=21;phases=true;guards=2;double=true;overflow=false;requests=0"; seen[1] != want {
		t.Errorf("the browser shows %s, not %s", seen[1], want)
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, ":CONSOLE") {
			t.Errorf("the page wrote on the console: %s", line)
		}
	}
}
