module authstack.dev/authstack/loadtests/k6

go 1.26.0

require (
	authstack.dev/authstack v0.0.0
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	go.k6.io/k6/v2 v2.2.0
)

replace authstack.dev/authstack => ../..
