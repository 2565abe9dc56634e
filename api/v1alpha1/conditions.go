package v1alpha1

// Annotations and labels.
const (
	// RequestedAtAnnotation on an AuthStack has it reconciled and measured again, on a LatencyTest
	// has it run again, each time its value changes. It is echoed in status.lastHandledReconcileAt.
	RequestedAtAnnotation = "authstack.dev/requestedAt"
	// ProbeRequestedAtAnnotation on an AuthStack has its storage probed again each time its value
	// changes. It is echoed in status.storage.probe.lastHandledRequestAt.
	ProbeRequestedAtAnnotation = "authstack.dev/probeRequestedAt"
	// StackLabel on every object of a stack is the name of the AuthStack.
	StackLabel = "authstack.dev/stack"
	// DoubleImagePrefix starts the image names of doubles, stand-ins for products whose images
	// cannot be had.
	DoubleImagePrefix = "authstack.dev/double/"
	// ComparisonLabel on whatever a LatencyComparison made is its name; the labels below are its
	// namespace, its uid, and the name of the variant.
	ComparisonLabel          = "authstack.dev/comparison"
	ComparisonNamespaceLabel = "authstack.dev/comparison-namespace"
	ComparisonUIDLabel       = "authstack.dev/comparison-uid"
	VariantLabel             = "authstack.dev/variant"
	// Finalizer of every kind.
	Finalizer = "authstack.dev/finalizer"
)

// Condition types of an AuthStack. All have positive polarity but Reconciling and Stalled, which are
// only present while True (kstatus).
const (
	// ConditionReady is True when every phase is: storage, database, cache, tuning, identity provider.
	// Latency is not part of it: a slow stack serves. False names the first phase that is not.
	ConditionReady = "Ready"
	// ConditionReconciling is present while the operator works towards the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is present where only a change by a person helps.
	ConditionStalled = "Stalled"
	// ConditionStorageReady is True when a StorageClass was found for what was asked.
	ConditionStorageReady = "StorageReady"
	// ConditionDatabaseReady is True when PostgreSQL answers a query of the product's role, and while
	// a commit that is made at each look comes back.
	ConditionDatabaseReady = "DatabaseReady"
	// ConditionCacheReady is True when Redis is up, or none is needed.
	ConditionCacheReady = "CacheReady"
	// ConditionTuningApplied is True when PostgreSQL has every computed setting in force, as read back.
	ConditionTuningApplied = "TuningApplied"
	// ConditionIdentityProviderReady is True when the product's Pods of this spec are all available.
	ConditionIdentityProviderReady = "IdentityProviderReady"
	// ConditionStorageProbed is True when the storage was measured, whatever the figures are, which
	// status.storage.probe has; False when it could not be; absent before the first probe. It is no
	// part of Ready.
	ConditionStorageProbed = "StorageProbed"
	// ConditionLatencyMet is True when the last test passed; absent before the first.
	ConditionLatencyMet = "LatencyMet"
)

// Condition types of a LatencyTest, beside Ready, Reconciling and Stalled.
const (
	// ConditionLeftBehind is present while a run has left something behind that could not be removed
	// and that is no longer tried; its message says what and where. The next run removes it too.
	ConditionLeftBehind = "LeftBehind"
)

// Reasons of conditions; an event about a condition has the same reason.
const (
	// ReasonReady: everything that the condition stands for is there.
	ReasonReady = "Ready"
	// ReasonProgressing: not there yet, nothing is wrong.
	ReasonProgressing = "Progressing"
	// ReasonSuspended: spec.suspend is true.
	ReasonSuspended = "Suspended"
	// ReasonDeleting: the object is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonDependencyNotReady: an earlier phase is not ready.
	ReasonDependencyNotReady = "DependencyNotReady"
	// ReasonApplyFailed: the API server refused an object; the message says why.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonStorageClassMissing: no StorageClass fits; the message lists those that exist.
	ReasonStorageClassMissing = "StorageClassMissing"
	// ReasonStorageClassAmbiguous: several StorageClasses fit; the message lists them.
	ReasonStorageClassAmbiguous = "StorageClassAmbiguous"
	// ReasonStorageClassUnsuitable: the class cannot carry a database; the message says why.
	ReasonStorageClassUnsuitable = "StorageClassUnsuitable"
	// ReasonRookMissing: spec.postgres.storage.cephRBD.blockPool needs Rook, whose CRDs are not installed.
	ReasonRookMissing = "RookMissing"
	// ReasonCephPoolNotReady: Rook says that the pool of the StorageClass is not Ready.
	ReasonCephPoolNotReady = "CephPoolNotReady"
	// ReasonCephUnhealthy: Rook says that the CephCluster is in HEALTH_ERR, or that data is not available.
	ReasonCephUnhealthy = "CephUnhealthy"
	// ReasonProbed: the storage was measured and nothing stands out. Where something does, the reason
	// is the kind of the worst finding: TooFast, Falls, NotAsClaimed, Slow, LongTail, NoAESInstructions.
	ReasonProbed = "Probed"
	// ReasonStorageHangs: a write of the probe, or a commit of the database, did not come back.
	ReasonStorageHangs = "StorageHangs"
	// ReasonProbeFailed: the storage could not be measured; the message says why.
	ReasonProbeFailed = "ProbeFailed"
	// ReasonPostgresOperatorMissing: the CRD of Zalando's postgres-operator is not installed.
	ReasonPostgresOperatorMissing = "PostgresOperatorMissing"
	// ReasonPostgresOperatorFailed: Zalando's operator reports a failure of the cluster.
	ReasonPostgresOperatorFailed = "PostgresOperatorFailed"
	// ReasonDatabaseUnreachable: PostgreSQL does not answer or refuses the product's role.
	ReasonDatabaseUnreachable = "DatabaseUnreachable"
	// ReasonDatabaseStandsStill: PostgreSQL takes connections and gives no answer, as it does where its storage hangs.
	ReasonDatabaseStandsStill = "DatabaseStandsStill"
	// ReasonSecretMissing: a Secret or ConfigMap that the spec names is missing or lacks a key.
	ReasonSecretMissing = "SecretMissing"
	// ReasonClaimMissing: a PersistentVolumeClaim that the spec names does not exist.
	ReasonClaimMissing = "ClaimMissing"
	// ReasonPendingRestart: a setting waits for a restart of PostgreSQL.
	ReasonPendingRestart = "PendingRestart"
	// ReasonNotInForce: PostgreSQL uses another value than the desired one; the message names it.
	ReasonNotInForce = "NotInForce"
	// ReasonUnsafeDurability: PostgreSQL runs with fsync or full_page_writes off.
	ReasonUnsafeDurability = "UnsafeDurability"
	// ReasonPodsFailing: Pods do not start; the message says why.
	ReasonPodsFailing = "PodsFailing"
	// ReasonUpgradePath: the version cannot be reached from the one that runs.
	ReasonUpgradePath = "UpgradePath"
	// ReasonInvalidSpec: something that CEL cannot see is wrong with the spec; the message says what to write.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonStackNotFound: the AuthStack that a LatencyTest names does not exist in its namespace.
	ReasonStackNotFound = "StackNotFound"
	// ReasonScriptNotFound: the ConfigMap or the key with the script of a LatencyTest does not exist.
	ReasonScriptNotFound = "ScriptNotFound"
	// ReasonWaitingForStack: the AuthStack is not Ready yet.
	ReasonWaitingForStack = "WaitingForStack"
	// ReasonWaitingForTest: another LatencyTest has its turn; one at a time runs on a cluster.
	ReasonWaitingForTest = "WaitingForTest"
	// ReasonCleanUpFailed: what a run made could not be removed.
	ReasonCleanUpFailed = "CleanUpFailed"
	// ReasonVoided: a guard voided the run of a LatencyTest, and it is repeated.
	ReasonVoided = "Voided"
	// ReasonRunning: the k6 Job is under way; of a LatencyComparison: the variants are made and measured.
	ReasonRunning = "Running"
	// ReasonCleaningUp: what was made for a LatencyComparison is taken away; the message says what is left.
	ReasonCleaningUp = "CleaningUp"
	// The reasons of a finished LatencyTest or LatencyComparison are its verdicts: Passed, Failed,
	// Inconclusive, Error.
)
