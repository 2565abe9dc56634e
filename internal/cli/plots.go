package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"authstack.dev/authstack/internal/report"
)

// writePlots writes each drawing of a report as SVG and PNG.
func writePlots(folder string, r *report.Report) error {
	files := report.PlotFiles(r)
	if len(files) == 0 {
		return errors.New("--plots: there is nothing to draw, the full histograms were not kept")
	}
	for _, file := range files {
		path := filepath.Join(folder, file.Name)
		if err := errors.Join(writeFile(path+".svg", os.O_TRUNC, file.WriteSVG), writeFile(path+".png", os.O_TRUNC, file.WritePNG)); err != nil {
			return fmt.Errorf("write plot: %w", err)
		}
	}
	return nil
}
