#!/usr/bin/env bash
# What action.yml runs: builds the command, gates, and hands on what came out. Inputs are in the
# environment; GITHUB_STEP_SUMMARY and GITHUB_OUTPUT are the runner's.
set -euo pipefail

# 1 is a verdict; what fails before there is one is 3.
mkdir -p "$REPORT" || exit 3
(cd "$ACTION" && CGO_ENABLED=0 go build -o "$REPORT/authstack" ./cmd/kubectl-authstack) || exit 3

arguments=(gate "$STACK" --namespace "$NAMESPACE" --timeout "$TIMEOUT"
  --json "$REPORT/report.json" --html "$REPORT/report.html" --junit "$REPORT/junit.xml" --markdown "$GITHUB_STEP_SUMMARY")
[ -z "$GIVEN_KUBECONFIG" ] || arguments+=(--kubeconfig "$GIVEN_KUBECONFIG")
[ -z "$REPEATS" ] || arguments+=(--repeats "$REPEATS")
[ -z "${BASELINE:-}" ] || arguments+=(--baseline "$BASELINE")
[ -z "${NOT_WORSE_THAN:-}" ] || arguments+=(--not-worse-than "$NOT_WORSE_THAN")
while IFS= read -r line; do [ -z "$line" ] || arguments+=(--objective "$line"); done <<<"$OBJECTIVES"
while IFS= read -r line; do [ -z "$line" ] || arguments+=(--scenario "$line"); done <<<"$SCENARIOS"

code=0
"$REPORT/authstack" "${arguments[@]}" || code=$?
verdicts=(Passed Failed Inconclusive Error)
verdict=${verdicts[$code]:-Error}
{
  echo "exit-code=$code"
  echo "verdict=$verdict"
  echo "report=$REPORT"
} >>"$GITHUB_OUTPUT"
if [ "$code" = 2 ] && [ "$ALLOW_INCONCLUSIVE" = true ]; then
  echo "::warning::The figures prove nothing: the verdict is Inconclusive, and allow-inconclusive lets the job pass."
  exit 0
fi
exit "$code"
