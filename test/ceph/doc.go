// Package ceph tests stacks on the real Ceph of the test cluster: crashes of the database together with all OSDs, Ceph with
// one and with two OSDs stopped, and a comparison during which the operator is killed. Build tag: ceph.
package ceph
