/**
 * Why a test may be skipped although CI=true. Everything else that is missing on a machine fails the run there: .ci/run installs it.
 * A pattern matches the reason that the test prints; `why` explains why no script of ours can provide it.
 */
export const allowedSkips = [
  { pattern: /^root may write everywhere$/, why: 'needs a user other than root; CI runs as root' },
  { pattern: /^no cgroup v2 that may be written$/, why: 'the kernel keeps its controllers in cgroup v1; a boot option, not a package' },
  {
    pattern: /^no network and mount namespaces may be created$/,
    why: 'a cluster with real kubelets needs them; a container without these rights has none, and no package grants them',
  },
  {
    pattern: /^terraform is not on PATH$|^Terraform was not found/,
    why: 'tests of the terraform binary only: no package registry carries it; all others run with OpenTofu, which .ci/run builds',
  },
  {
    pattern: /^the clone does not contain the commit of the recording$/,
    why: 'a shallow clone has no earlier commits; the test of the upgrade itself runs everywhere',
  },
  {
    pattern: /^PULUMI_BIN is not set$|^OARLOCK_PULUMI_NODE_MODULES is not set$|^OARLOCK_VERSITYGW is not set$/,
    why: 'the Pulumi CLI is in no package registry; its recorded conversations are replayed everywhere',
  },
  {
    pattern: /^KEDA was not found/,
    why: 'scripts/build-keda.sh compiles the SDKs of all clouds, which takes longer than everything else that CI builds',
  },
]
