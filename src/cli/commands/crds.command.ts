import { accessOptions, type DeclareCommand } from '../options.ts'

const notes = `
Both compare the CRDs of the server with those of this version. "upgrade" needs
permission to write CRDs, and none for roles and policies, which it leaves as they
are: "oarlock manifests" prints all of them. CRDs of a newer version are kept.`

export const declare: DeclareCommand = program => {
  const crds = program.command('crds').description("check or upgrade Oarlock's CRDs on a Kubernetes API server").addHelpText('after', notes)
  const load = () => import('./crds.ts')
  accessOptions(crds.command('check'))
    .description('exit with 1 if CRDs are missing, or older than this version needs')
    .action(async options => await (await load()).checkCrds(options))
  accessOptions(crds.command('upgrade'))
    .description('install missing CRDs and replace older ones, and wait until the server serves them')
    .action(async options => await (await load()).upgradeCrds(options))
}
