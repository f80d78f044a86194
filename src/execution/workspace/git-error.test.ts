import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gitError } from './git-error.ts'

const url = 'https://example.com/team/app.git'
for (const { stderr, reason, message } of [
  {
    stderr: ["fatal: couldn't find remote ref refs/heads/main"],
    reason: 'SourceNotFound',
    message: /branch "main" was not found in "https/,
  },
  {
    stderr: ["fatal: could not read Username for 'https://example.com': terminal prompts disabled"],
    reason: 'SourceAuthFailed',
    message: /denied access: fatal: could not read Username.*check the Secret named in spec\.source\.git\.secretRef/,
  },
  {
    stderr: ['git@example.com: Permission denied (publickey).', 'fatal: Could not read from remote repository.'],
    reason: 'SourceAuthFailed',
    message: /Permission denied \(publickey\)\.; fatal/,
  },
  { stderr: ['fatal: unable to access: Could not resolve host: example.com'], reason: 'SourceUnavailable', message: /cannot be reached/ },
  {
    stderr: ["fatal: '/srv/app' does not appear to be a git repository"],
    reason: 'SourceNotFound',
    message: /is not a readable repository/,
  },
  { stderr: [], reason: 'SourceUnavailable', message: /git failed with exit code 128$/ },
]) {
  test(`git output ${JSON.stringify(stderr[0] ?? '')} is ${reason}`, () => {
    const error = gitError({ exitCode: 128, stdout: [], stderr }, 'spec.source.git.branch', url, 'branch "main"')
    assert.equal(error.reason, reason)
    assert.match(error.message, message)
  })
}
