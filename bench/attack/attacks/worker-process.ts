/** What a Stack provides runs or reads something in the worker process or the control plane: repositories, kubeconfigs, engines. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { StackSpec } from '../../../src/api/index.ts'
import { GitRepository } from '../../../test/support/git-repository.ts'
import { skipWithoutTerraformEngine, terraformEngine } from '../../../test/support/run-program.ts'
import { type Attack, NotRunHere } from '../attack.ts'
import type { Target } from '../target.ts'

const author = { actor: 'stack author' } as const
const trivial = { engine: 'command' as const, command: { apply: ['true'] } }

const gitUrls: Attack = {
  name: 'git-urls',
  ...author,
  promise: 'Sources',
  async attempt(target, control) {
    const marker = target.newPath()
    const touch = `touch ${marker}`
    const secret = join(target.dataDir, 'pki')
    const urls = [
      `ext::sh -c ${touch.replaceAll(' ', '% ')}`,
      `ext::${touch}`,
      `fd::7`,
      `--upload-pack=${touch}`,
      `ssh://-oProxyCommand=${encodeURIComponent(touch)}/x`,
      `ssh://git@-oProxyCommand=${encodeURIComponent(touch)}:22/x`,
      `ssh://-oProxyCommand=x@localhost/x`,
      `git@-oProxyCommand=${touch.replaceAll(' ', '%20')}:x`,
      `file://${target.dataDir}/runs`,
      `file://${target.allowedDirectory}/../data`,
      `file://${target.allowedDirectory}/%2e%2e/data`,
      `file://localhost${secret}`,
      `FILE://${secret}`,
      `http://127.0.0.1:1/x`,
      `git://127.0.0.1/x`,
      `https://token@127.0.0.1:1/x`,
      `https://127.0.0.1:1/x.git?y`,
      `${secret}`,
    ]
    const valid = join(target.allowedDirectory, target.newName('valid'))
    new GitRepository(valid).commit({ 'a.txt': 'a' })
    const phases = await Promise.all(
      [`file://${valid}`, ...urls].map(async url => {
        const name = target.newName('git')
        const spec: StackSpec = { ...trivial, pool: 'attack', retry: { limit: 0 }, source: { git: { url } }, isolation: target.isolation }
        const isCreated = await target.createIfValid(name, spec)
        return isCreated ? (await target.untilSettled(name))?.status?.phase : 'rejected'
      }),
    )
    control(phases[0] === 'Succeeded', `a Stack of a valid URL is ${phases[0]}`)
    return existsSync(marker) ? ['a URL of a repository ran a program'] : []
  },
}

const hostileRepository: Attack = {
  name: 'git-repository',
  ...author,
  promise: 'Sources',
  async attempt(target, control) {
    const marker = target.newPath()
    const directory = join(target.allowedDirectory, target.newName('hostile'))
    const repository = new GitRepository(directory)
    const script = `#!/bin/sh\ntouch ${marker}\n`
    mkdirSync(join(directory, '.git', 'hooks'), { recursive: true })
    for (const hook of ['post-checkout', 'pre-receive', 'update', 'post-merge', 'fsmonitor-watchman'])
      writeFileSync(join(directory, '.git', 'hooks', hook), script, { mode: 0o755 })
    repository.commit({
      '.gitattributes': '* filter=evil diff=evil merge=evil text ident\n*.lfs filter=lfs\n',
      '.gitmodules': `[submodule "a"]\n\tpath = a\n\turl = ext::sh -c "touch% ${marker}"\n\tupdate = !touch ${marker}\n[submodule "../../../x"]\n\tpath = b\n\turl = ${target.dataDir}\n`,
      '.lfsconfig': `[lfs]\n\turl = https://127.0.0.1:1/\n`,
      'attack.sh': 'cat a.lfs; ls',
      'a.lfs': 'version https://git-lfs.github.com/spec/v1\n',
    })
    const config = [
      `[filter "evil"]\n\tsmudge = touch ${marker}\n\tclean = touch ${marker}\n\tprocess = touch ${marker}\n\trequired = true`,
      `[core]\n\tfsmonitor = touch ${marker}\n\tsshCommand = touch ${marker}\n\thooksPath = .git/hooks\n\tpager = touch ${marker}\n\teditor = touch ${marker}`,
      `[uploadpack]\n\tpackObjectsHook = touch ${marker}`,
      `[credential]\n\thelper = !touch ${marker}\n[alias]\n\tls-tree = !touch ${marker}\n[diff "evil"]\n\ttextconv = touch ${marker}`,
    ]
    writeFileSync(join(directory, '.git', 'config'), `${config.join('\n')}\n[include]\n\tpath = ${directory}/evil.config\n`, { flag: 'a' })
    writeFileSync(join(directory, 'evil.config'), config.join('\n'))
    const { text, log } = await target.runStack({
      engine: 'command',
      command: { apply: ['sh', 'attack.sh'] },
      source: { git: { url: `file://${directory}` } },
    })
    control(/^attack\.sh$/m.test(log), `its files are not in the Run: ${text.slice(0, 300)}`)
    const gained = target.secretsIn(text)
    return existsSync(marker) ? [...gained, 'a repository ran a program'] : gained
  },
}

const linksInSources: Attack = {
  name: 'source-links',
  slow: true,
  ...author,
  promise: 'Sources',
  async attempt(target, control) {
    const directory = join(target.allowedDirectory, target.newName('links'))
    const token = join(target.dataDir, 'pki', 'admin-token')
    const repository = new GitRepository(directory)
    symlinkSync(token, join(directory, 'token'))
    symlinkSync('../../data/pki', join(directory, 'pki'))
    symlinkSync('/dev/zero', join(directory, 'main.tf'))
    repository.commit({ 'attack.sh': 'cat token pki/* main.tf | head -c 100000 | od -An -v -tx1' })
    // Paths of a tree that the command line of git does not create.
    const git = (args: string[], input = '') =>
      execFileSync('git', ['-C', directory, '-c', 'user.name=t', '-c', 'user.email=t@example.invalid', ...args], {
        input,
        encoding: 'utf8',
      }).trim()
    const blob = git(['hash-object', '-w', '--stdin'], 'owned')
    const inner = git(['mktree'], `100755 blob ${blob}\tpost-checkout\n`)
    const evilTree = git(
      ['mktree', '--missing'],
      `040000 tree ${inner}\t.GIT\n120000 blob ${git(['hash-object', '-w', '--stdin'], target.dataDir)}\tlink\n`,
    )
    git(['update-ref', 'refs/heads/evil', git(['commit-tree', evilTree, '-m', 'evil'])])
    const regular = join(target.allowedDirectory, target.newName('regular'))
    new GitRepository(regular).commit({ token: 'a regular file' })
    const sources = [
      { git: { url: `file://${directory}` } },
      { git: { url: `file://${directory}`, branch: 'evil' } },
      { git: { url: `file://${directory}`, directory: '../../data/pki' } },
      { git: { url: `file://${directory}`, directory: 'pki' } },
      { git: { url: `file://${regular}` } },
      { path: { path: directory } },
      { path: { path: `${target.allowedDirectory}/../data/pki` } },
      { path: { path: join(target.dataDir, 'pki') } },
      { path: { path: '/proc/self/root/etc' } },
    ]
    const gained: string[] = []
    let isRead = false
    for (const source of sources) {
      const name = target.newName('source')
      const command = { apply: ['sh', '-c', 'cat token pki/* admin-token * 2>/dev/null | head -c 100000 | od -An -v -tx1'] }
      await target.author.create(name, {
        engine: 'command',
        command,
        source,
        pool: 'attack',
        retry: { limit: 0 },
        isolation: target.isolation,
      })
      const run = await target.untilSettled(name)
      const { text } = await target.readResult(name, run)
      gained.push(...target.secretsIn(text))
      isRead ||= text.replace(/[^0-9a-f]/g, '').includes(Buffer.from('a regular file').toString('hex'))
    }
    control(isRead, 'the regular file of a source is not read')
    return [...new Set(gained)]
  },
}

const kubeconfigs: Attack = {
  name: 'kubeconfig-of-a-stack',
  slow: true,
  ...author,
  promise: 'Worker process',
  async attempt(target, control) {
    const marker = target.newPath()
    const received: string[] = []
    const { key, cert } = selfSigned()
    const server = createServer({ key, cert }, (request, response) => {
      received.push(request.headers.authorization ?? '')
      response.writeHead(403, { 'content-type': 'application/json' }).end('{"kind":"Status","status":"Failure","code":403}')
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    const token = join(target.dataDir, 'pki', 'admin-token')
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', interactiveMode: 'Never' }
    const users: object[] = [
      { exec: { ...exec, command: 'sh', args: ['-c', `env > ${marker}`] } },
      { exec: { ...exec, command: '/usr/bin/touch', args: [marker] } },
      { tokenFile: token },
      { 'client-certificate': token, 'client-key': token },
      { token: 'x', 'auth-provider': { name: 'gcp', config: { 'cmd-path': '/usr/bin/touch', 'cmd-args': marker } } },
    ]
    const clusters: object[] = [{ 'insecure-skip-tls-verify': true }, { 'certificate-authority': token }]
    try {
      const texts: string[] = []
      for (const [user, cluster] of [
        ...users.map(user => [user, clusters[0]!] as const),
        [{ token: 'x' }, clusters[1]!] as const,
        [{ token: 'allowed' }, clusters[0]!] as const,
      ]) {
        const name = target.newName('kubeconfig')
        const kubeconfig = JSON.stringify({
          'current-context': 'c',
          contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
          clusters: [{ name: 'c', cluster: { server: url, ...cluster } }],
          users: [{ name: 'u', user }],
        })
        await target.createSecret(name, { kubeconfig })
        const manifest = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\n'
        const { text } = await target.runStack({
          engine: 'manifests',
          source: { inline: { files: { 'a.yaml': manifest } } },
          manifests: { kubeconfigSecretRef: { name } },
        })
        texts.push(text)
      }
      control(received.includes('Bearer allowed'), `a valid kubeconfig is not used: ${texts.at(-1)?.slice(0, 300)}`)
      const gained = [...texts, ...received].flatMap(text => target.secretsIn(text))
      return existsSync(marker) ? [...gained, 'a kubeconfig ran a program as the worker'] : [...new Set(gained)]
    } finally {
      server.closeAllConnections()
      server.close()
    }
  },
}

function selfSigned(): { key: string; cert: string } {
  const args = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    '-',
    '-out',
    '-',
    '-days',
    '2',
    '-subj',
    '/CN=x',
  ]
  let text: string
  try {
    text = execFileSync('openssl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    throw new NotRunHere('there is no openssl')
  }
  const [key = ''] = /-----BEGIN PRIVATE KEY-----[\s\S]*?-----END PRIVATE KEY-----/.exec(text) ?? []
  const [cert = ''] = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/.exec(text) ?? []
  return { key, cert }
}

const terraformSettings: Attack = {
  name: 'terraform-settings',
  ...author,
  promise: 'States',
  slow: true,
  async attempt(target, control) {
    target.requireSandbox()
    if (skipWithoutTerraformEngine) throw new NotRunHere(skipWithoutTerraformEngine)
    const resource = 'resource "terraform_data" "a" { input = "x" }\n'
    const marker = target.newPath()
    const sources: Record<string, string>[] = [
      { 'backend.tf': `terraform {\n  backend "local" { path = "${join(target.dataDir, 'keys', 'stolen')}" }\n}\n` },
      { 'override.tf': 'terraform {\n  backend "http" { address = "https://127.0.0.1:1/" }\n}\n' },
      {
        '.terraformrc': `provider_installation { dev_overrides { "a/b" = "${target.dataDir}" } }\n`,
        'backend_override.tf': 'terraform {\n  backend "local" { path = "elsewhere" }\n}\n',
      },
    ]
    const stacks: Parameters<Target['runStack']>[0][] = sources.map(files => ({
      engine: terraformEngine,
      source: { inline: { files: { 'main.tf': resource, ...files } } },
    }))
    for (const [name, value] of Object.entries({
      TF_CLI_ARGS: '-state=/tmp/elsewhere',
      TF_CLI_ARGS_apply: '-state-out=/tmp/elsewhere',
      TF_CLI_ARGS_plan: '-out=/tmp/elsewhere',
      TF_CLI_ARGS_init: '-backend=false',
      TF_DATA_DIR: '/tmp/elsewhere',
      TF_WORKSPACE: 'elsewhere',
      TF_LOG_PATH: marker,
      TF_CLI_CONFIG_FILE: join(target.dataDir, 'kubeconfig'),
    }))
      stacks.push({
        engine: terraformEngine,
        source: { inline: { files: { 'main.tf': resource } } },
        env: [
          { name, value },
          { name: 'TF_LOG', value: 'trace' },
        ],
      })
    const plain = await target.runStack({ engine: terraformEngine, source: { inline: { files: { 'main.tf': resource } } } })
    control(plain.text.includes('terraform_data'), `without settings the state is not in the store: ${plain.text.slice(0, 300)}`)
    const gained: string[] = []
    for (const stack of stacks) {
      const result = await target.runStack(stack)
      gained.push(...target.secretsIn(result.text))
      const state = await target.send('GET', `/state/attacker/${result.name}`, { token: target.authorToken })
      // A Run that succeeded with a state that is stored elsewhere.
      if (result.run?.status?.phase === 'Succeeded' && !state.text.includes('terraform_data'))
        gained.push(`${stack.env?.[0]?.name ?? Object.keys(stack.source.inline?.files ?? {})[1]}: the state is not in the store`)
    }
    return existsSync(marker) ? [...gained, 'wrote a file of the machine'] : gained
  },
}

export const workerProcessAttacks: readonly Attack[] = [gitUrls, hostileRepository, linksInSources, kubeconfigs, terraformSettings]
