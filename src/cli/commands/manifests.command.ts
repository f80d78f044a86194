import type { DeclareCommand } from '../options.ts'

const notes = `
Prints what "oarlock controller --crds install" applies to a Kubernetes API
server: namespaces, CRDs, roles and admission policies. For GitOps, or to let an
administrator apply them: oarlock manifests | kubectl apply --server-side -f -
If another version is installed, add --force-conflicts to take its fields over.
The embedded server ("oarlock serve") has no admission policies: --no-policies.`

export const declare: DeclareCommand = program => {
  program
    .command('manifests')
    .description('print CRDs, roles and admission policies as YAML')
    .option('--no-policies', 'omit the admission policies and the roles of workers, for the embedded server, which has an authorizer')
    .option('--external-metrics', 'also print what "oarlock controller --external-metrics" needs: roles and an APIService')
    .addHelpText('after', notes)
    .action(async options => await (await import('./manifests.ts')).manifests(options))
}
