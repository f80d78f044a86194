/** A Go program of engine pulumi with the real CLI, which PULUMI_BIN names, its language host next to it, and modules of the Go proxy. */
import { deepEqual, doesNotMatch, equal } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { GitRepository } from './support/git-repository.ts'
import { useOarlock } from './support/oarlock-fixture.ts'
import { skipWithout } from './support/run-program.ts'
import { isReady } from './support/stacks.ts'

const { PULUMI_BIN: pulumi } = process.env
const host = join(dirname(pulumi ?? ''), 'pulumi-language-go')
const skip = pulumi === undefined ? 'PULUMI_BIN is not set' : existsSync(host) ? skipWithout('go') : `${host} does not exist`

const program = (parts: string) => `package main

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

type part struct{ pulumi.ResourceState }

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		greeting := config.New(ctx, "").Require("greeting")
		for _, name := range []string{${parts}} {
			if err := ctx.RegisterComponentResource("test:index:Part", name, &part{}); err != nil {
				return err
			}
		}
		ctx.Export("greeting", pulumi.String(greeting))
		ctx.Export("hidden", pulumi.ToSecret(pulumi.String(greeting+" in secret")))
		return nil
	})
}
`

describe('go programs of engine pulumi', { skip }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
  const up = useOarlock({ args: ['--allow-path', directory], env: { PATH: `${dirname(pulumi ?? '')}:${process.env.PATH}` } })
  const { stacks } = up
  let repository: GitRepository
  before(() => {
    repository = new GitRepository(join(directory, 'program'))
    const files = {
      'Pulumi.yaml': 'name: shop\nruntime: go\n',
      'go.mod': 'module example.com/shop\n\ngo 1.25\n\nrequire github.com/pulumi/pulumi/sdk/v3 v3.260.0\n',
      'main.go': program('"first", "second"'),
    }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(repository.path, name), text)
    execFileSync('go', ['mod', 'tidy'], { cwd: repository.path, stdio: 'pipe' })
    repository.commit({})
  })
  after(() => rmSync(directory, { recursive: true }))

  test('a program is compiled with the modules that were downloaded for it, previewed, updated and destroyed', {
    timeout: 1_200_000,
  }, async () => {
    await stacks.create('go', {
      engine: 'pulumi',
      source: { git: { url: repository.url, branch: 'main' } },
      variables: { greeting: 'hello' },
      // Otherwise each Run compiles the SDK.
      env: [{ name: 'GOCACHE', value: execFileSync('go', ['env', 'GOCACHE'], { encoding: 'utf8' }).trim() }],
    })
    const first = await stacks.until('go', 'Ready', isReady, 900_000)
    deepEqual([first.status?.resources, first.status?.outputs], [2, { greeting: 'hello' }])
    const [run] = await stacks.runsOf('go')
    deepEqual([run?.status?.dependencies?.manager, run?.status?.dependencies?.source], ['go', 'Installed'])
    await up.succeeds('delete', 'stack', 'go')
    await stacks.untilDeleted('go', 600_000)
  })

  test('a program that was built before is started, and not compiled', { timeout: 300_000 }, async () => {
    execFileSync('go', ['build', '-o', 'shop', '.'], { cwd: repository.path, stdio: 'pipe' })
    repository.commit({ 'Pulumi.yaml': 'name: shop\nruntime: { name: go, options: { binary: ./shop } }\n' })
    await stacks.create('built', {
      engine: 'pulumi',
      source: { git: { url: repository.url, branch: 'main' } },
      variables: { greeting: 'hello' },
    })
    const stack = await stacks.until('built', 'Ready', isReady, 240_000)
    equal(stack.status?.resources, 2)
    const { text } = await up.oarlock('logs', 'built')
    doesNotMatch(text, /[Cc]ompiling/)
  })
})
