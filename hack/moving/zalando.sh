#!/usr/bin/env bash
# Moves the database of an AuthStack to another medium where Zalando's postgres-operator makes it: a standby cluster
# follows the old database on the new medium, and people wait for the switchover alone.
#
#   hack/moving/zalando.sh NAMESPACE OLD NEW.yaml STORAGECLASS
#
# OLD is the AuthStack that runs. NEW.yaml holds one AuthStack of another name in the same namespace: the same product,
# version, host and PostgreSQL version, spec.postgres.zalando, and the new spec.postgres.storage. STORAGECLASS is the class that its
# storage means (kubectl get storageclass).
#
# It may be run again after it was interrupted: each step looks at what is there. The old stack is suspended and scaled to
# 0, and nothing of it is deleted: to go back, take suspend away from it (what people did since the switchover stays
# with the new one). Afterwards: point the ingress at the new stack's Service, and delete the old stack.
set -euo pipefail

fail() { printf '\033[31m%s\033[0m\n' "$*" >&2; exit 1; }
say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }

case "${1:-}" in -h | --help) usage; exit 0 ;; esac
[ $# = 4 ] || { usage >&2; exit 2; }
namespace=$1 old=$2 manifest=$3 class=$4
for needed in kubectl jq; do command -v "$needed" >/dev/null || fail "$needed is needed and not in PATH"; done
k() { kubectl -n "$namespace" "$@"; }

# --- what is asked for ---
before=$(k get authstack "$old" -o json)
after=$(k create --dry-run=client -o json -f "$manifest")
new=$(jq -r '.metadata.name' <<<"$after")
[ "$(jq -r '.kind' <<<"$after")" = AuthStack ] || fail "$manifest does not hold one AuthStack"
[ "$(jq -r '.metadata.namespace' <<<"$after")" = "$namespace" ] || fail "the AuthStack in $manifest is in another namespace: write namespace: $namespace"
[ "$new" != "$old" ] || fail "the AuthStack in $manifest has the name of the old one: give it another"
for one in "$before" "$after"; do
  jq -e '.spec.postgres.zalando' <<<"$one" >/dev/null || fail "AuthStack $(jq -r .metadata.name <<<"$one") has no spec.postgres.zalando; see the way by a dump in docs/moving-storage.md"
done
for field in .spec.host .spec.authentik.version .spec.authelia.version .spec.postgres.zalando.version .spec.postgres.database; do
  [ "$(jq -r "$field" <<<"$before")" = "$(jq -r "$field" <<<"$after")" ] ||
    fail "$field differs between AuthStack $old and $manifest: move first, change it afterwards"
done
k get storageclass "$class" >/dev/null
size=$(jq -r '.spec.postgres.storage.size // "10Gi"' <<<"$after")

primary() { k get pods -l "cluster-name=$1,spilo-role=master" -o 'jsonpath={.items[0].metadata.name}'; }
sql() { # CLUSTER STATEMENT: asked of its primary, as the superuser
  local pod
  pod=$(primary "$1" 2>/dev/null) && k exec "$pod" -c postgres -- psql -U postgres -d postgres -qAtX -v ON_ERROR_STOP=1 -c "$2" 2>/dev/null
}
until_true() { # WHAT LIMIT COMMAND…
  local what=$1 limit=$2 began=$SECONDS said=$SECONDS
  shift 2
  until "$@"; do
    ((SECONDS - began < limit)) || fail "$what: not within $limit seconds. Nothing was deleted; look at kubectl -n $namespace get postgresql,pods, and run this again."
    if ((SECONDS - said >= 15)); then said=$SECONDS && say "waiting: $what"; fi
    sleep 1
  done
}

# --- the Secrets: roles and passwords come with the data, and so must what opens them ---
copy_secret() { # FROM TO
  k get secret "$2" >/dev/null 2>&1 && return
  k get secret "$1" -o json | jq --arg name "$2" --arg old "$old" --arg new "$new" '
    .metadata |= {name: $name, namespace, annotations: ((.annotations // {}) | del(."kubectl.kubernetes.io/last-applied-configuration")),
                  labels: ((.labels // {}) | map_values(if . == $old then $new elif . == $old + "-postgres" then $new + "-postgres" else . end))}
    | del(.metadata.annotations["acid.zalan.do/controller"])' | k create -f - >/dev/null
  say "copied Secret $1 to $2"
}
for secret in $(k get secrets -l "authstack.dev/stack=$old" -o 'jsonpath={.items[*].metadata.name}'); do
  case "$secret" in "$old"-*) copy_secret "$secret" "$new-${secret#"$old"-}" ;; esac
done
for secret in $(k get secrets -l "cluster-name=$old-postgres" -o 'jsonpath={.items[*].metadata.name}'); do
  copy_secret "$secret" "${secret/.$old-postgres./.$new-postgres.}"
done

# --- a standby cluster on the new medium, which the new AuthStack will take over by its label ---
if ! k get postgresql "$new-postgres" >/dev/null 2>&1; then
  k get postgresql "$old-postgres" -o json | jq --arg old "$old" --arg new "$new" --arg class "$class" --arg size "$size" --arg host "$old-postgres.$namespace" '
    {apiVersion, kind, metadata: {name: ($new + "-postgres"), namespace: .metadata.namespace, annotations: ((.metadata.annotations // {}) | with_entries(select(.key | startswith("authstack.dev/")))),
      labels: (.metadata.labels | map_values(if . == $old then $new else . end))},
     spec: (.spec | del(.standby, .clone) | .volume = (.volume | del(.iops, .throughput)) + {storageClass: $class, size: $size} | .numberOfInstances = 1
       | .standby = {standby_host: $host})}' | k create -f - >/dev/null
  say "made the standby cluster $new-postgres of $size on class $class"
fi
# Nothing of the old stack is touched before the new database is known to be its copy.
identifier() { sql "$1" 'SELECT system_identifier FROM pg_control_system()'; }
answers() { [ -n "$(identifier "$new-postgres")" ]; }
until_true "the standby cluster has its copy and answers" 1800 answers
[ "$(identifier "$new-postgres")" = "$(identifier "$old-postgres")" ] ||
  fail "$new-postgres is no copy of $old-postgres but a database of its own, so nothing was moved; delete the postgresql resource $new-postgres. Does its image know STANDBY_HOST, as Spilo does?"
promoted() { [ "$(sql "$new-postgres" 'SELECT pg_is_in_recovery()')" = f ]; }

if ! promoted; then
  behind() { [ "$(sql "$new-postgres" "SELECT pg_last_wal_replay_lsn() >= '$1'")" = t ]; }
  lsn() { sql "$old-postgres" 'SELECT pg_current_wal_lsn()'; }
  until_true "the standby catches up while people log in" 1800 behind "$(lsn)"
  say "the standby follows; the switchover begins: from here on nobody can log in"
  stopped=$SECONDS
  k patch authstack "$old" --type merge -p '{"spec":{"suspend":true}}' >/dev/null
  k scale deployment -l "authstack.dev/stack=$old" --replicas 0 >/dev/null
  gone() { [ -z "$(k get pods -l "authstack.dev/stack=$old,app.kubernetes.io/name in (authentik, authelia)" -o name)" ]; }
  until_true "the old stack's Pods are gone" 300 gone
  until_true "the last commit of the old database is in the new one" 600 behind "$(lsn)"
  say "every commit is there; promoting"
  # By Patroni itself, before Zalando's operator hears of it: the operator would first make the Pod anew and then wait ten minutes
  # for a leader that is none yet.
  k exec "$(primary "$new-postgres")" -c postgres -- python3 -c \
    'import urllib.request as u; u.urlopen(u.Request("http://localhost:8008/config", b"{\"standby_cluster\": null}", method="PATCH"))'
  until_true "Patroni promotes the standby" 300 promoted
fi
if [ -n "$(k get postgresql "$new-postgres" -o 'jsonpath={.spec.standby}')" ]; then
  k patch postgresql "$new-postgres" --type json -p '[{"op": "remove", "path": "/spec/standby"}]' >/dev/null
  sleep 5 # Until the operator's word is about this change.
fi

# Zalando's operator sets the roles while Patroni may not be done, gives up as UpdateFailed, and would look again in half an
# hour. A change of the resource makes it look now; this one is of a value by a byte.
settled() {
  case "$(k get postgresql "$new-postgres" -o 'jsonpath={.status.PostgresClusterStatus}')" in
    Running) return 0 ;;
    UpdateFailed | SyncFailed)
      lag=$((${lag:-33554432} + 1))
      k patch postgresql "$new-postgres" --type merge -p "{\"spec\":{\"patroni\":{\"maximum_lag_on_failover\":$lag}}}" >/dev/null
      sleep 5
      ;;
  esac
  return 1
}
until_true "Zalando's operator is done with the promoted cluster" 600 settled

kubectl apply -f "$manifest" >/dev/null
say "AuthStack $new takes the database over"
k wait --for=condition=Ready "authstack/$new" --timeout=15m >/dev/null
[ -z "${stopped:-}" ] || say "people can log in at Service $(k get authstack "$new" -o 'jsonpath={.status.identityProvider.serviceName}') again, after $((SECONDS - stopped)) seconds"
cat <<END
Left to do: point the ingress at the new Service; when all is well, kubectl -n $namespace delete authstack $old
(its deletionPolicy says whether its volumes stay). The old stack is suspended and scaled to 0.
END
