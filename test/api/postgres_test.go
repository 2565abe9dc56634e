package api

import (
	"strings"
	"testing"
)

func postgres(fields string) string { return `{spec: {postgres: {` + fields + `}}}` }

func TestDatabaseProvider(t *testing.T) {
	external := `external: {host: db.example.com, database: sso, secretName: db}`
	try(t, map[string]row{
		"two providers":                   {authentik, postgres(`zalando: {}, standalone: {}`), "", "none means standalone"},
		"PostgreSQL 12 of Zalando":        {authentik, postgres(`zalando: {version: "12"}`), "", "version must be 14, 15, 16 or 17"},
		"PostgreSQL 12 standalone":        {authentik, postgres(`standalone: {version: "12"}`), "", "version must be 14, 15, 16, 17 or 18"},
		"PostgreSQL 18 of Zalando":        {authentik, postgres(`zalando: {version: "18"}`), "", "version must be 14, 15, 16 or 17"},
		"PostgreSQL x of Zalando":         {authentik, postgres(`zalando: {version: "17"}`), postgres(`zalando: {version: x}`), "version must be 14, 15, 16 or 17"},
		"a downgrade":                     {authentik, postgres(`zalando: {version: "17"}`), postgres(`zalando: {version: "16"}`), "restore a dump into a new AuthStack"},
		"an upgrade by Zalando":           {authentik, postgres(`zalando: {version: "16"}`), postgres(`zalando: {version: "17"}`), ""},
		"an upgrade of a standalone":      {authentik, postgres(`standalone: {version: "16"}`), postgres(`standalone: {version: "17"}`), "restore a dump into a new AuthStack"},
		"a version given later":           {authentik, postgres(`standalone: {}`), postgres(`standalone: {version: "17"}`), ""},
		"a version given later, not 17":   {authentik, postgres(`standalone: {}`), postgres(`standalone: {version: "16"}`), "restore a dump into a new AuthStack"},
		"a version taken away":            {authentik, postgres(`standalone: {version: "16"}`), postgres(`standalone: null`), "restore a dump into a new AuthStack"},
		"another provider later":          {authentik, postgres(`zalando: {}`), postgres(`zalando: null, standalone: {}`), "the database provider of a stack cannot be exchanged"},
		"a provider after none":           {authentik, "", postgres(`zalando: {}`), "the database provider of a stack cannot be exchanged"},
		"no provider after one":           {authentik, postgres(`zalando: {}`), `{spec: {postgres: null}}`, "the database provider of a stack cannot be exchanged"},
		"standalone said aloud later":     {authentik, "", postgres(`standalone: {}`), ""},
		"an external with storage":        {authentik, postgres(external + `, storage: {}`), "", "remove postgres.storage"},
		"an external with resources":      {authentik, postgres(external + `, resources: {}`), "", "remove postgres.resources"},
		"an external with parameters":     {authentik, postgres(external + `, parameters: {work_mem: 8MB}`), "", "remove postgres.parameters"},
		"an external with two names":      {authentik, postgres(external + `, database: other`), "", "remove spec.postgres.database"},
		"an external":                     {authentik, postgres(external), "", ""},
		"an external with scheme":         {authentik, postgres(`external: {host: "postgres://db", database: sso, secretName: db}`), "", "without scheme, port or path"},
		"an external with a dotted name":  {authentik, postgres(`external: {host: db, database: sso.eu, secretName: db}`), "", "dots and dashes are not allowed"},
		"a database name with a dot":      {authentik, postgres(`database: sso.eu`), "", "dots and dashes are not allowed"},
		"a database name in upper case":   {authentik, postgres(`database: SSO`), "", "a database name holds a-z, 0-9 and _"},
		"a database name of PostgreSQL's": {authentik, postgres(`database: postgres`), "", "choose another name, for example authentik"},
		"another database name":           {authentik, postgres(`database: a`), postgres(`database: b`), "the name of the database cannot be changed"},
		"a database name later":           {authentik, "", postgres(`database: other`), "the name of the database cannot be changed"},
		"the default name later":          {authentik, "", postgres(`database: authentik`), ""},
		"another durability":              {authentik, postgres(`durability: Strict`), postgres(`durability: Relaxed`), ""},
		"a durability that is none":       {authentik, postgres(`durability: "off"`), "", `supported values: "Strict", "IdentityDurable", "Relaxed"`},
		"durability by table":             {authentik, postgres(`durability: IdentityDurable`), postgres(`durability: Strict`), ""},
	})
}

func TestParameters(t *testing.T) {
	one := func(name, value string) string { return postgres(`parameters: {"` + name + `": "` + value + `"}`) }
	try(t, map[string]row{
		"fsync off":                   {authentik, one("fsync", "off"), "", "write durability: Relaxed"},
		"FSYNC off":                   {authentik, one("FSYNC", "off"), "", "are written in lower case with _"},
		"fsync false":                 {authentik, one("fsync", "false"), "", "write durability: Relaxed"},
		"fsync on":                    {authentik, one("fsync", "on"), "", ""},
		"full_page_writes off":        {authentik, one("full_page_writes", "off"), "", "write durability: Relaxed"},
		"synchronous_commit":          {authentik, one("synchronous_commit", "off"), "", "write durability: Strict, IdentityDurable or Relaxed"},
		"synchronous_commit, on":      {authentik, one("synchronous_commit", "on"), "", "write durability: Strict, IdentityDurable or Relaxed"},
		"Synchronous_Commit":          {authentik, one("Synchronous_Commit", "off"), "", "are written in lower case with _"},
		"fsync off later":             {authentik, one("work_mem", "8MB"), one("fsync", "off"), "write durability: Relaxed"},
		"a command":                   {authentik, one("archive_command", "rm -rf /"), "", "remove it from postgres.parameters"},
		"a library to load a command": {authentik, one("archive_library", "x"), "", "remove it from postgres.parameters"},
		"an address":                  {authentik, one("listen_addresses", "*"), "", "remove it from postgres.parameters"},
		"a name with a dash":          {authentik, one("work-mem", "8MB"), "", "are written in lower case with _"},
		"a name with a line break":    {authentik, one(`work_mem\nfsync`, "8MB"), "", "are written in lower case with _"},
		"a value with a line break":   {authentik, one("work_mem", `8MB\nfsync = off`), "", "a parameter value has no line break"},
		"a value of 1025":             {authentik, one("search_path", strings.Repeat("a", 1025)), "", "Too long"},
		"an extension's parameter":    {authentik, one("pg_stat_statements.track", "all"), "", ""},
	})
}

func TestStorage(t *testing.T) {
	storage := func(fields string) string { return postgres(`storage: {` + fields + `}`) }
	medium := "the medium of a live database cannot be changed in place"
	try(t, map[string]row{
		"two media":                  {authentik, storage(`cephRBD: {}, localNVMe: {}`), "", "none means the default StorageClass"},
		"a medium and a class":       {authentik, storage(`cephRBD: {}, storageClassName: fast`), "", "none means the default StorageClass"},
		"size 0":                     {authentik, storage(`size: 0`), "", "size must be at least 1Gi"},
		"size 0 in words":            {authentik, storage(`size: "0"`), "", "size must be at least 1Gi"},
		"a negative size":            {authentik, storage(`size: -10Gi`), "", "size must be at least 1Gi"},
		"a size below 1Gi":           {authentik, storage(`size: 1000Mi`), "", "size must be at least 1Gi"},
		"a size in bytes, a number":  {authentik, storage(`size: 10737418240`), "", ""},
		"a size with a fraction":     {authentik, storage(`size: 1.5Gi`), "", ""},
		"a size that is none":        {authentik, storage(`size: big`), "", "spec.postgres.storage.size"},
		"growth":                     {authentik, storage(`size: 10Gi`), storage(`size: 11Gi`), ""},
		"growth in another unit":     {authentik, storage(`size: 1Gi`), storage(`size: 2000000000`), ""},
		"the same in another unit":   {authentik, storage(`size: 1Gi`), storage(`size: 1024Mi`), ""},
		"shrinking":                  {authentik, storage(`size: 10Gi`), storage(`size: 9Gi`), "a volume can grow but not shrink"},
		"shrinking in another unit":  {authentik, storage(`size: 10Gi`), storage(`size: 10G`), "a volume can grow but not shrink"},
		"shrinking below the number": {authentik, storage(`size: 3000000000`), storage(`size: 2Gi`), "a volume can grow but not shrink"},
		"shrinking from the default": {authentik, "", storage(`size: 5Gi`), "a volume can grow but not shrink"},
		"shrinking to the default":   {authentik, storage(`size: 20Gi`), storage(`size: null`), "a volume can grow but not shrink"},
		"shrinking by no storage":    {authentik, storage(`size: 20Gi`), `{spec: {postgres: {storage: null}}}`, "a volume can grow but not shrink"},
		"growth from the default":    {authentik, "", storage(`size: 20Gi`), ""},
		"another medium":             {authentik, storage(`cephRBD: {}`), storage(`cephRBD: null, localNVMe: {}`), medium},
		"no medium after one":        {authentik, storage(`cephRBD: {}`), storage(`cephRBD: null, size: 10Gi`), medium},
		"no storage after a medium":  {authentik, storage(`cephRBD: {}`), `{spec: {postgres: {storage: null}}}`, medium},
		"no postgres after a medium": {authentik, storage(`cephRBD: {}`), `{spec: {postgres: null}}`, medium},
		"a medium later":             {authentik, "", storage(`cephRBD: {}`), medium},
		"another class":              {authentik, storage(`storageClassName: a`), storage(`storageClassName: b`), medium},
		"the way to another medium":  {authentik, storage(`cephRBD: {}`), storage(`cephRBD: null, localNVMe: {}`), "docs/moving-storage.md says: with Zalando by a standby cluster and a switchover"},
		"a pool":                     {authentik, storage(`cephRBD: {blockPool: {name: sso, replicas: 2, failureDomain: host}}`), "", ""},
		"a pool without a name":      {authentik, storage(`cephRBD: {blockPool: {}}`), "", "blockPool.name: Required value"},
		"a pool in upper case":       {authentik, storage(`cephRBD: {blockPool: {name: SSO}}`), "", "for example sso-database"},
		"a pool without copies":      {authentik, storage(`cephRBD: {blockPool: {name: sso, replicas: 0}}`), "", "greater than or equal to 1"},
		"a domain of no level":       {authentik, storage(`cephRBD: {blockPool: {name: sso, failureDomain: "Host 1"}}`), "", "for example host, rack, zone or osd"},
		"another pool":               {authentik, storage(`cephRBD: {blockPool: {name: sso}}`), storage(`cephRBD: {blockPool: {name: other}}`), "the pool of a live database cannot be exchanged"},
		"a pool later":               {authentik, storage(`cephRBD: {}`), storage(`cephRBD: {blockPool: {name: sso}}`), "to or from a pool of its own"},
		"no pool any more":           {authentik, storage(`cephRBD: {blockPool: {name: sso}}`), storage(`cephRBD: {blockPool: null}`), "to or from a pool of its own"},
		"another Ceph":               {authentik, storage(`cephRBD: {blockPool: {name: sso, namespace: rook-ceph}}`), storage(`cephRBD: {blockPool: {namespace: ceph}}`), "the namespace of the CephCluster cannot be changed"},
		"more copies":                {authentik, storage(`cephRBD: {blockPool: {name: sso}}`), storage(`cephRBD: {blockPool: {replicas: 2}}`), ""},
		"a probe":                    {authentik, storage(`probe: {mode: Manual, short: 5s, long: 30s}`), storage(`probe: {mode: "Off"}`), ""},
		"a probe now and then":       {authentik, storage(`probe: {mode: Sometimes}`), "", `supported values: "Automatic", "Manual", "Off"`},
		"a probe of no length":       {authentik, storage(`probe: {short: 0s}`), "", "short must be 1s to 5m"},
		"a probe of a day":           {authentik, storage(`probe: {long: 24h}`), "", "long must be 5s to 1h"},
		"a probe of words":           {authentik, storage(`probe: {long: long}`), "", "long must be 5s to 1h"},
	})
}
