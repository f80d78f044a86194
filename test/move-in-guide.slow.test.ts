/** Runs every command of docs/move-an-existing-repository.md, in order, in one shell. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { after, before, test } from 'node:test'
import { GitRepository } from './support/git-repository.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { runProgram, skipWithout, skipWithoutTerraformEngine, terraformEngine } from './support/run-program.ts'
import { StackFixture } from './support/stacks.ts'

const root = join(import.meta.dirname, '..')
const guide = readFileSync(join(root, 'docs', 'move-an-existing-repository.md'), 'utf8')
const dataDir = makeDataDir()
const work = join(dataDir, 'work')
let oarlock: OarlockProcess
let stacks: StackFixture

before(async () => {
  mkdirSync(work)
  oarlock = await startOarlock(dataDir, ['--allow-path', dataDir])
  stacks = new StackFixture(oarlock.client)
})
after(async () => {
  await oarlock?.stop()
  removeDirectory(dataDir)
})

/** The commands of a section, for the engine and the repository of this test. */
function commandsOf(heading: string, url: string): string {
  const section = guide.split(/^## /m).find(text => text.startsWith(`${heading}\n`)) ?? ''
  const commands = [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text]) => text).join('\n')
  match(commands, /oarlock/)
  return commands.replaceAll('https://git.example.com/infra.git', url).replaceAll('engine: terraform', `engine: ${terraformEngine}`)
}

test('a repository is moved in and out by the commands of the guide, and no resource is created twice', {
  skip: skipWithoutTerraformEngine || skipWithout('kubectl'),
}, async () => {
  const repository = new GitRepository(join(dataDir, 'infra.git'))
  const created = join(dataDir, 'created')
  const backend = join(dataDir, 'backend.tfstate')
  mkdirSync(join(repository.path, 'network'))
  repository.commit({
    'network/backend.tf': `terraform {\n  backend "local" {\n    path = "${backend}"\n  }\n}\n`,
    'network/main.tf': `resource "terraform_data" "subnet" {
  for_each = toset(["a", "b"])
  provisioner "local-exec" {
    command = "echo \${each.key} >> ${created}"
  }
}
output "subnets" {
  value = [for subnet in terraform_data.subnet : subnet.id]
}
`,
  })
  const bin = join(dataDir, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'oarlock'), `#!/bin/sh\nexec "${process.execPath}" "${join(root, 'bin', 'oarlock.js')}" "$@"\n`, { mode: 0o755 })
  if (terraformEngine === 'opentofu') writeFileSync(join(bin, 'terraform'), '#!/bin/sh\nexec tofu "$@"\n', { mode: 0o755 })
  const shell = async (commands: string) => {
    const env = {
      ...{ PATH: `${bin}${delimiter}${process.env.PATH}`, KUBECONFIG: oarlock.kubeconfig, CHECKPOINT_DISABLE: '1', TF_IN_AUTOMATION: '1' },
      ...{ GIT_CONFIG_GLOBAL: join(dataDir, 'gitconfig'), GIT_CONFIG_SYSTEM: '/dev/null', TF_CLI_CONFIG_FILE: undefined },
    }
    const { code, text } = await runProgram('bash', ['-euxo', 'pipefail', '-c', commands], { cwd: work, env })
    equal(code, 0, text)
    return text
  }
  const ids = () => JSON.parse(readFileSync(backend, 'utf8')).outputs.subnets.value as string[]

  writeFileSync(join(dataDir, 'gitconfig'), '[user]\n  name = t\n  email = t@example.invalid\n')
  await shell(`git clone --quiet ${repository.url} infra
git -C ${repository.path} config receive.denyCurrentBranch ignore
terraform -chdir=infra/network init -input=false && terraform -chdir=infra/network apply -input=false -auto-approve`)
  const imported = ids()
  await shell(commandsOf('Move the state in', repository.url))
  const plans = (await stacks.runsOf('network')).flatMap(({ status }) => status?.plan ?? [])
  deepEqual([...new Set(plans.map(({ add, change, destroy }) => `${add} ${change} ${destroy}`))], ['0 0 0'])

  await shell(commandsOf('Move the state out', repository.url))
  equal(await stacks.stacks.getOrUndefined('network', { namespace: 'default' }), undefined)
  deepEqual(ids(), imported)
  equal(readFileSync(created, 'utf8').split('\n').length, 3)
})
