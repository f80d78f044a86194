import type { DeclareCommand } from '../options.ts'

const notes = `
Prints what "oarlock controller --crds install" applies to a Kubernetes API
server: namespaces, CRDs, roles and admission policies. For GitOps, or to let an
administrator apply them: oarlock manifests | kubectl apply --server-side -f -`

export const declare: DeclareCommand = program => {
  program
    .command('manifests')
    .description('print CRDs, roles and admission policies as YAML')
    .addHelpText('after', notes)
    .action(async () => await (await import('./manifests.ts')).manifests())
}
