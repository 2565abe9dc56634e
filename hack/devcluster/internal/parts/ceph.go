package parts

import (
	"fmt"
	"net/netip"
	"strconv"
)

// OSDs is how many there are: as many as an image has replicas.
const OSDs = 3

// CephPool is the pool that volumes are images of, named as in Rook's examples.
const CephPool = "replicapool"

// OSDName is the name of an OSD's part.
func OSDName(n int) string { return "ceph-osd-" + strconv.Itoa(n) }

// CephConf is the path of the configuration that every Ceph program is given.
func (s Setup) CephConf() string { return s.config("ceph.conf") }

// CephAddress is where Ceph listens: on the host's loopback, which pods cannot
// reach, for it asks nobody who he is.
func (s Setup) CephAddress() netip.Addr {
	address := s.Network.Host().As4()
	address[0] = 127
	return netip.AddrFrom4(address)
}

// HoldFile is the file that keeps an OSD from being started while it is there.
func (s Setup) HoldFile(part string) string { return s.Layout.InState("ceph", "held-"+part) }

// cephParts lists Ceph's programs. The OSDs' order is that of their numbers.
func (s Setup) cephParts() []Part {
	program := func(name, id string) []string {
		return []string{name, "--foreground", "--conf", s.CephConf(), "--id", id}
	}
	monitor := "tcp://" + s.CephAddress().String() + ":3300"
	list := []Part{
		{Name: "ceph-mon", Argv: program("ceph-mon", "a")},
		{Name: "ceph-mgr", Argv: program("ceph-mgr", "a"), After: monitor},
	}
	for n := range OSDs {
		list = append(list, Part{Name: OSDName(n), Argv: program("ceph-osd", strconv.Itoa(n)), After: monitor, Hold: s.HoldFile(OSDName(n))})
	}
	return list
}

func (s Setup) cephConfig() string {
	return fmt.Sprintf(`[global]
fsid = %[1]s
mon_host = %[2]s
public_addr = %[2]s
cluster_addr = %[2]s
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
auth_allow_insecure_global_id_reclaim = false

mon_data = %[3]s/mon
mgr_data = %[3]s/mgr
osd_data = %[3]s/osd.$id
keyring = %[3]s/keyring
run_dir = %[3]s/run
crash_dir = %[3]s/crash
admin_socket = %[3]s/run/$name.$pid.asok
log_file = %[3]s/log/$name.log
mon_cluster_log_file = %[3]s/log/cluster.log

# Three replicas on three OSDs of one machine. With two of them it goes on, with
# one it waits: that is Rook's default, and a fault to be tried out.
osd_crush_chooseleaf_type = 0
osd_pool_default_size = 3
osd_pool_default_min_size = 2
osd_pool_default_pg_num = 16
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_delete = true
# One OSD's word is enough, and there is no other to move its data to.
mon_osd_min_down_reporters = 1
mon_osd_reporter_subtree_level = osd
mon_osd_down_out_interval = 31536000
# An OSD that was marked down learns it from this at the latest; by default that
# takes it five minutes when all of them are.
osd_beacon_report_interval = 5
# How long a placement group waits, when an OSD went without a word, for that one's
# leave to serve reads to run out: 5 s instead of 16.
osd_pool_default_read_lease_ratio = 0.25
# News travel at once: a person or a test waits for them, and there are few.
mgr_stats_period = 1
mgr_tick_period = 1
paxos_propose_interval = 0.1
# The disk is the machine's, and others fill it.
mon_data_avail_warn = 1
mon_data_avail_crit = 0
mon_osd_nearfull_ratio = 0.90
mon_osd_backfillfull_ratio = 0.93

# Sparse files. Writes go to them past the page cache and are synced for real.
osd_objectstore = bluestore
bluestore_block_size = %[4]d
bluestore_block_wal_size = 0
bluestore_block_db_size = 0
# Small and of fixed size: the machine has better use for its memory.
bluestore_cache_autotune = false
bluestore_cache_size = 67108864
mgr_initial_modules =

# As the kernel's driver: nothing is cached by the client.
rbd_cache = false
rbd_default_features = 1
`, s.CephFSID, s.CephAddress(), s.Layout.InState("ceph"), int64(10<<30))
}
