##@ Chart

.PHONY: chart
chart: $(BIN)/helm ## Lint the chart and compare what it renders with the golden files.
	helm lint --strict charts/authstack --set image.repository=x,images.k6=x
	go test ./test/chart/

.PHONY: chart-update
chart-update: $(BIN)/helm ## Write the chart's golden files anew.
	go test ./test/chart/ -update

.PHONY: chart-package
chart-package: $(BIN)/helm ## Write the chart as an archive into out.
	@mkdir -p $(OUT)
	helm package charts/authstack --destination $(OUT)
