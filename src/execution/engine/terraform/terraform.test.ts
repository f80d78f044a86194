import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createProcessRunner } from '../../workspace/index.ts'
import type { EngineContext } from '../engine.ts'
import type { EngineError } from '../engine-error.ts'
import { createEngineHarness, engineTestEnv } from '../engine-harness.testing.ts'
import { type Flavor, opentofuFlavor, terraformFlavor } from './flavor.ts'
import { createTerraformEngine } from './terraform.ts'

const config = `
variable "size" {
  type = number
  validation {
    condition     = var.size < 10
    error_message = "size must be below 10."
  }
}
variable "password" {
  type      = string
  sensitive = true
  default   = "none"
}
resource "terraform_data" "part" {
  count = var.size
  input = "part-\${count.index}"
}
resource "terraform_data" "secret" { input = var.password }
output "parts" { value = terraform_data.part[*].output }
output "password" {
  value     = terraform_data.secret.output
  sensitive = true
}
`
const variables = { size: 2, password: 'hunter2secret' }
const secret = { variables, sensitiveNames: ['password'] }
const rejectsWith = (want: { reason: string; retryable?: boolean; message?: RegExp }) => (error: EngineError) => {
  assert.equal(error.reason, want.reason, error.message)
  if (want.retryable !== undefined) assert.equal(error.retryable, want.retryable)
  if (want.message) assert.match(error.message, want.message)
  return true
}

for (const flavor of [terraformFlavor, opentofuFlavor] satisfies Flavor[]) {
  const env = engineTestEnv()
  const engine = createTerraformEngine(flavor, env)
  const detection = await engine.detect(env)
  const skip = detection.found ? false : `${flavor.title} was not found: ${detection.reasons.join(', ')}`
  const nameOf = (what: string) => `${flavor.name}: ${what}`
  const planned = async (context: EngineContext, options = {}) => {
    await engine.prepare(context)
    return await engine.plan(context, options)
  }

  test(nameOf('plans, applies the plan, finds no changes, destroys'), { skip }, async t => {
    const harness = await createEngineHarness(t, { 'main.tf': config }, secret)
    const plan = await planned(harness.context)
    assert.deepEqual([plan.add, plan.change, plan.destroy, plan.hasChanges], [3, 0, 0, true])
    assert.match(plan.digest, /^sha256:[0-9a-f]{64}$/)
    assert.ok(plan.summary.includes('+ terraform_data.part[0]'), plan.summary.join('\n'))
    const result = await engine.apply(harness.context, plan)
    assert.deepEqual(result, {
      outputs: { parts: { value: ['part-0', 'part-1'], sensitive: false }, password: { value: 'hunter2secret', sensitive: true } },
      resources: 3,
      changed: true,
    })
    assert.deepEqual([harness.progress[0]?.done, harness.progress.at(-1)?.done, harness.progress.at(-1)?.total], [0, 3, 3])
    const everything = [...harness.log, ...plan.summary].join('\n')
    assert.ok(!everything.includes('hunter2secret'), `invariant 9: ${everything}`)
    assert.equal((await stat(join(harness.context.inputs, 'variables.tfvars.json'))).mode & 0o777, 0o600)

    const again = await engine.plan(harness.context)
    assert.equal(again.hasChanges, false)
    assert.deepEqual(await engine.apply(harness.context, again), { ...result, changed: false })

    const destroy = await engine.plan(harness.context, { destroy: true })
    assert.deepEqual([destroy.intent, destroy.destroy], ['destroy', 3])
    const destroyed = await engine.apply(harness.context, destroy)
    assert.equal(destroyed.resources, 0)
  })

  test(nameOf('a later Run applies a stored plan in its own directory, and cannot apply it twice'), { skip }, async t => {
    const harness = await createEngineHarness(t, { 'main.tf': config }, secret)
    const plan = await planned(harness.context)
    assert.equal((await engine.readPlan(harness.context, plan.file ?? '')).digest, plan.digest, 'the same plan has the same digest')
    const bytes = await readFile(plan.file ?? '')
    await rm(join(harness.root, 'run-1'), { recursive: true })

    const later = await harness.nextRun()
    const file = join(later.scratch, 'approved.tfplan')
    await writeFile(file, bytes)
    await engine.prepare(later)
    const approved = await engine.readPlan(later, file)
    assert.equal(approved.digest, plan.digest)
    await engine.apply(later, approved)
    assert.ok(existsSync(later.statePath ?? ''), 'the state is in the directory of this Run')
    assert.ok(!existsSync(join(harness.root, 'run-1')))

    assert.notEqual((await engine.readPlan(later, file)).digest, plan.digest, 'the state has changed')
    await assert.rejects(engine.apply(later, approved), rejectsWith({ reason: 'PlanOutdated' }))
  })

  test(nameOf('a plan with another file or another source is another plan, even if the changes are the same'), { skip }, async t => {
    const main = 'resource "terraform_data" "a" {\n  provisioner "local-exec" {\n    command = file("run.sh")\n  }\n}\n'
    const harness = await createEngineHarness(t, { 'main.tf': main, 'run.sh': 'true' })
    const plan = await planned(harness.context)
    const other = await engine.readPlan({ ...harness.context, sourceDigest: 'sha256:other' }, plan.file ?? '')
    assert.notEqual(other.digest, plan.digest)
    // The plan file contains the configuration. Of run.sh it contains nothing: the digest of the source covers it.
    await harness.write({ 'main.tf': main.replace('run.sh', 'other.sh'), 'other.sh': 'evil' })
    assert.notEqual((await engine.plan(harness.context)).digest, plan.digest)
  })

  test(nameOf('what an engine leaves in its directories is not followed, does not block, and does not change the plan'), {
    skip,
    timeout: 60_000,
  }, async t => {
    const harness = await createEngineHarness(t, { 'main.tf': config, 'modules/size.tf': 'variable "extra" { default = 1 }' }, secret)
    const { context } = harness
    symlinkSync(join('modules', 'size.tf'), join(context.directory, 'linked.tf'))
    const plan = await planned({ ...context, variables: { ...variables, extra: 2 }, spec: { ...context.spec, variables: { extra: 2 } } })
    assert.ok(!existsSync(join(context.scratch, 'apply.tfplan')), 'no engine can replace the plan that is applied')
    const victim = join(harness.root, 'victim')
    await writeFile(victim, 'of the worker')
    for (const name of ['variables.tfvars.json', 'apply.tfplan', 'approved.tfplan']) symlinkSync(victim, join(context.scratch, name))
    symlinkSync('/dev/zero', join(context.directory, 'endless.tf'))
    execFileSync('mkfifo', [join(context.directory, 'pipe.tf')])
    // Terraform itself would read them: only the worker is asked here.
    await assert.rejects(
      engine.apply({ ...context, run: async () => ({ exitCode: 1, signal: null }) }, plan),
      rejectsWith({ reason: 'ApplyFailed' }),
    )
    assert.equal(await readFile(victim, 'utf8'), 'of the worker')
    for (const name of ['endless.tf', 'pipe.tf']) await rm(join(context.directory, name))
    assert.equal((await engine.apply(context, plan)).resources, 3)
  })

  test(nameOf('credentials reach plan and apply, and init only for the backend or by spec.terraform.initEnvironment'), {
    skip,
  }, async t => {
    const env = { AWS_SECRET_ACCESS_KEY: 'key', PASSWORD: 'password', TF_TOKEN_registry_example: 'token', REGION: 'eu' }
    const credentialNames = ['AWS_SECRET_ACCESS_KEY', 'PASSWORD', 'TF_TOKEN_registry_example']
    const received = async (more: Partial<EngineContext>, main = 'resource "terraform_data" "a" {}') => {
      const harness = await createEngineHarness(t, { 'main.tf': main }, { env, credentialNames, ...more })
      const commands: string[] = []
      const run: EngineContext['run'] = options => {
        const names = Object.keys(env).filter(name => options.env[name] !== undefined)
        const backend = options.args.includes('-backend=false') ? ' without backend' : ''
        commands.push(`${options.args[0]}${backend}: ${names.map(name => name[0]).join('')}`)
        return harness.context.run(options)
      }
      const context = { ...harness.context, run }
      await engine.apply(context, await planned(context))
      return [...new Set(commands)]
    }
    const others = ['plan', 'show', 'apply', 'output']
    const all = others.map(name => `${name}: APTR`)
    assert.deepEqual(await received({}), ['init: TR', ...all])
    const spec = { engine: flavor.name, terraform: { initEnvironment: ['PASSWORD'] } }
    assert.deepEqual(await received({ spec }), ['init: PTR', ...all])
    const external = await received(
      { spec: { engine: flavor.name, state: 'External' } },
      'terraform {\n  backend "local" {}\n}\nresource "terraform_data" "a" {}',
    )
    assert.deepEqual(external.slice(0, 2), ['init without backend: TR', 'init: APTR'])
  })

  const bad: { name: string; files: Record<string, string>; overrides: Partial<EngineContext>; want: Parameters<typeof rejectsWith>[0] }[] =
    [
      {
        name: 'a value that a validation rule rejects',
        files: { 'main.tf': config },
        overrides: { ...secret, variables: { ...variables, size: 30 } },
        want: { reason: 'InvalidConfiguration', retryable: false, message: /^Invalid value for variable: size must be below 10\./ },
      },
      {
        name: 'a missing variable',
        files: { 'main.tf': config },
        overrides: {},
        want: {
          reason: 'InvalidConfiguration',
          retryable: false,
          message: /"size" is not set.*Set it in spec.variables.*\(main.tf line 2\)$/,
        },
      },
      {
        name: 'an undeclared variable',
        files: { 'main.tf': config },
        overrides: { spec: { engine: flavor.name, variables: { siez: 1 } }, variables: { siez: 1 } },
        want: {
          reason: 'InvalidConfiguration',
          retryable: false,
          message: /^spec.variables.siez is not declared in the configuration \(declared: password, size\);/,
        },
      },
      {
        name: 'an unsupported argument',
        files: { 'main.tf': 'resource "terraform_data" "a" {\n  inptu = 1\n}\n' },
        overrides: {},
        want: { reason: 'InvalidConfiguration', retryable: false, message: /inptu.*Did you mean "input"\? \(main.tf line 2\)$/ },
      },
      {
        name: 'a file that does not parse',
        files: { 'main.tf': 'resource "terraform_data" {\n' },
        overrides: {},
        want: { reason: 'InvalidConfiguration', retryable: false, message: /main.tf line 1\)/ },
      },
      {
        name: 'TF_WORKSPACE with Managed state',
        files: { 'main.tf': '' },
        overrides: { env: { TF_WORKSPACE: 'prod' } },
        want: { reason: 'InvalidSpec', retryable: false, message: /TF_WORKSPACE/ },
      },
      {
        name: 'an override file that sets the backend',
        files: { 'main.tf': '', 'zz_override.tf': 'terraform {\n  backend "local" {\n    path = "elsewhere.tfstate"\n  }\n}\n' },
        overrides: {},
        want: { reason: 'BackendInFiles', retryable: false, message: /^zz_override\.tf:2 configures backend "local"/ },
      },
    ]
  for (const { name, files, overrides, want } of bad) {
    test(nameOf(`${name} is an error that names the location and the fix`), { skip }, async t => {
      const harness = await createEngineHarness(t, files, overrides)
      await assert.rejects(planned(harness.context), rejectsWith(want))
      assert.ok(!harness.log.join('\n').includes('hunter2secret'), 'invariant 9')
    })
  }

  test(nameOf('a failing provisioner is a retryable ApplyFailed, and the state keeps the finished resources'), { skip }, async t => {
    const files = {
      'main.tf': `resource "terraform_data" "good" {}
resource "terraform_data" "bad" {
  depends_on = [terraform_data.good]
  provisioner "local-exec" {
    command = "echo no luck >&2; exit 3"
  }
}
`,
    }
    const harness = await createEngineHarness(t, files)
    const plan = await planned(harness.context)
    await assert.rejects(
      engine.apply(harness.context, plan),
      rejectsWith({ reason: 'ApplyFailed', retryable: true, message: /exit status 3.*no luck.*\(main.tf line 4\)$/ }),
    )
    const state = await readFile(harness.context.statePath ?? '', 'utf8')
    assert.match(state, /"good"/)
    assert.ok(harness.log.includes('  on main.tf line 4, in resource "terraform_data" "bad"'), harness.log.join('\n'))
  })

  test(nameOf('an apply that is interrupted fails with Interrupted, and the state is saved'), { skip }, async t => {
    const files = {
      'main.tf': `resource "terraform_data" "fast" {}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.fast]
  provisioner "local-exec" { command = "sleep 60" }
}
`,
    }
    const harness = await createEngineHarness(t, files, { spec: { engine: flavor.name } })
    const plan = await planned(harness.context)
    let meanwhile = ''
    let isInterrupted = false
    const log = (line: string) => {
      // While it starts its first process: a SIGINT to the group then counted twice ("Two interrupts received", 4 of 600), and left an empty file.
      if (!line.includes("slow: Provisioning with 'local-exec'") || isInterrupted) return
      isInterrupted = true
      void interruptOnceSaved()
    }
    // The file is written in place, so a read may find it empty or incomplete; `slow` keeps running meanwhile.
    const interruptOnceSaved = async () => {
      const deadlineMs = Date.now() + 10_000
      while (!meanwhile.includes('"fast"') && Date.now() < deadlineMs) {
        meanwhile = readFileSync(harness.context.statePath ?? '', 'utf8')
        await sleep(20)
      }
      harness.abort.abort()
    }
    const context = { ...harness.context, log }
    await assert.rejects(engine.apply(context, plan), rejectsWith({ reason: 'Interrupted', retryable: true }))
    assert.match(meanwhile, /"fast"/, 'the state is written after every resource, which state streaming depends on')
    assert.match(await readFile(harness.context.statePath ?? '', 'utf8'), /"fast"/)
  })

  test(nameOf('an apply that is killed reports the creations that were in progress'), { skip }, async t => {
    const files = {
      'main.tf': `resource "terraform_data" "fast" {}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.fast]
  provisioner "local-exec" { command = "sleep 60" }
}
`,
    }
    const harness = await createEngineHarness(t, files, { spec: { engine: flavor.name } })
    const plan = await planned(harness.context)
    const home = dirname(harness.context.directory)
    const kill = (group: number) => void process.kill(-group, 'SIGKILL')
    const reported: unknown[] = []
    const context: EngineContext = {
      ...harness.context,
      run: createProcessRunner({ runUid: `killed-${process.pid}`, home, tmp: home, interrupt: kill }),
      log: line => line.includes("slow: Provisioning with 'local-exec'") && harness.abort.abort(),
      pendingOperations: (operations, options) => void reported.push(operations, options),
    }
    await assert.rejects(engine.apply(context, plan))
    assert.deepEqual(reported, [[{ type: 'creating', urn: 'terraform_data.slow' }], { isOwn: true }])
    const steps = harness.progress as { creating?: readonly string[] }[]
    assert.deepEqual(steps.at(-1)?.creating, ['terraform_data.slow'])
  })

  test(nameOf('a refresh-only plan has no changes when the resources are unchanged'), { skip }, async t => {
    const harness = await createEngineHarness(t, { 'main.tf': config }, secret)
    await engine.apply(harness.context, await planned(harness.context))
    const refresh = await engine.plan(harness.context, { refreshOnly: true })
    assert.deepEqual([refresh.intent, refresh.hasChanges], ['refresh', false])
  })

  test(nameOf('a cloud block is rejected, except to destroy what Managed state has'), { skip }, async t => {
    const harness = await createEngineHarness(t, { 'main.tf': 'resource "terraform_data" "a" {}\n' })
    await engine.apply(harness.context, await planned(harness.context))
    const state = await readFile(harness.context.statePath ?? '', 'utf8')
    const cloud = 'terraform {\n  cloud {\n    organization = "acme"\n    workspaces { name = "prod" }\n  }\n}\n'
    await harness.write({ 'main.tf': `${cloud}resource "terraform_data" "a" {}\n` })
    const next = await harness.nextRun()
    await writeFile(next.statePath ?? '', state)
    await assert.rejects(
      engine.prepare(next),
      rejectsWith({ reason: 'BackendInFiles', retryable: false, message: /main\.tf:2 configures cloud/ }),
    )
    const destroy = { ...next, isDestroy: true }
    await engine.prepare(destroy)
    const result = await engine.apply(destroy, await engine.plan(destroy, { destroy: true }))
    assert.equal(result.resources, 0)
  })

  test(nameOf('External state keeps the backend of the source'), { skip }, async t => {
    const files = {
      'main.tf': 'terraform {\n  backend "local" {\n    path = "../mine.tfstate"\n  }\n}\nresource "terraform_data" "a" {}\n',
    }
    const harness = await createEngineHarness(t, files, { spec: { engine: flavor.name, state: 'External' }, statePath: undefined })
    const result = await engine.apply(harness.context, await planned(harness.context))
    assert.equal(result.resources, 1)
    assert.ok(existsSync(join(harness.root, 'run-1', 'mine.tfstate')))
    assert.ok(!existsSync(join(harness.context.directory, 'oarlock_override.tf.json')))
  })

  test(nameOf('errored.tfstate replaces the state, and the log reports it'), { skip }, async t => {
    const files = {
      'main.tf': `resource "terraform_data" "saboteur" {
  provisioner "local-exec" {
    command = "rm -rf ../state && touch ../state"
  }
}
`,
    }
    const harness = await createEngineHarness(t, files)
    const plan = await planned(harness.context)
    // Restores the directory after the failed save, as when a full disk has space again.
    const run: EngineContext['run'] = async options => {
      const result = await harness.context.run(options)
      if (options.args[0] === 'apply') {
        await rm(join(harness.root, 'run-1', 'state'), { force: true })
        await mkdir(join(harness.root, 'run-1', 'state'))
      }
      return result
    }
    await assert.rejects(engine.apply({ ...harness.context, run }, plan), rejectsWith({ reason: 'ApplyFailed', retryable: true }))
    assert.match(await readFile(harness.context.statePath ?? '', 'utf8'), /"saboteur"/)
    assert.ok(
      harness.log.some(line => /recovered it from errored.tfstate/.test(line)),
      harness.log.join('\n'),
    )
  })
}

test('a missing binary is EngineNotFound, and the message names the places that were searched and how to install it', async t => {
  const harness = await createEngineHarness(t, {})
  const engine = createTerraformEngine(terraformFlavor, { PATH: '/nowhere' })
  await assert.rejects(
    engine.prepare(harness.context),
    rejectsWith({
      reason: 'EngineNotFound',
      retryable: false,
      message: /^Terraform was not found: terraform is not on the PATH, OARLOCK_TERRAFORM is not set; install it from https:/,
    }),
  )
  const override = createTerraformEngine(terraformFlavor, { PATH: process.env.PATH, OARLOCK_TERRAFORM: '/nowhere/terraform' })
  await assert.rejects(
    override.prepare(harness.context),
    rejectsWith({ reason: 'EngineNotFound', message: /OARLOCK_TERRAFORM=\/nowhere\/terraform/ }),
  )
})
