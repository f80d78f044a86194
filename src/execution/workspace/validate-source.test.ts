import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StackSource } from '../../api/index.ts'
import { validateSource } from './index.ts'

const commit = 'a'.repeat(40)
const inline = (files: Record<string, string>): StackSource => ({ inline: { files } })
const git = (url: string, more: object = {}): StackSource => ({ git: { url, ...more } })

for (const source of [
  inline({ 'main.tf': '', 'modules/vpc/main.tf': '', '.hidden': '', 'a..b': '' }),
  { path: { path: '/srv/stacks/network' } },
  git('https://example.com/team/repo.git'),
  git('https://example.com:8443/team/repo.git', { branch: 'feature/x' }),
  git('ssh://git@example.com:2222/team/repo.git', { tag: 'v1.2.0' }),
  git('git@example.com:team/repo.git', { commit, directory: 'stacks/network' }),
  git('file:///srv/git/repo.git', { directory: '.' }),
]) {
  test(`accepts ${JSON.stringify(source).slice(0, 100)}`, () => assert.deepEqual(validateSource(source), []))
}

const cases: [StackSource | undefined, string, RegExp][] = [
  [undefined, 'spec.source', /exactly one of inline, path, git/],
  [{}, 'spec.source', /exactly one of inline, path, git/],
  [{ path: { path: '/a' }, git: { url: 'https://a/b' } }, 'spec.source', /got path and git/],
  [inline({}), 'spec.source.inline.files', /at least one file/],
  [inline({ '../x': '' }), 'spec.source.inline.files[../x]', /must not contain "\.\."/],
  [inline({ 'a/../../x': '' }), 'spec.source.inline.files[a/../../x]', /must not contain "\.\."/],
  [inline({ '/etc/passwd': '' }), 'spec.source.inline.files[/etc/passwd]', /must be relative/],
  [inline({ 'a\\..\\b': '' }), 'spec.source.inline.files[a\\..\\b]', /backslash/],
  [inline({ 'a\0b': '' }), 'spec.source.inline.files[a\0b]', /control characters/],
  [inline({ 'a//b': '' }), 'spec.source.inline.files[a//b]', /empty or "\." parts/],
  [inline({ '.git/config': '' }), 'spec.source.inline.files[.git/config]', /must not contain "\.git"/],
  [inline({ a: '', 'a/b': '' }), 'spec.source.inline.files[a/b]', /"a" is also a file/],
  [inline({ big: 'x'.repeat(5 * 1024 * 1024) }), 'spec.source.inline.files', /5242880 bytes in total, may not be more than 524288/],
  [{ path: { path: 'stacks' } }, 'spec.source.path.path', /absolute path/],
  [{ path: { path: '/srv/../etc' } }, 'spec.source.path.path', /must not contain "\.\."/],
  [git(''), 'spec.source.git.url', /Required/],
  [git('--upload-pack=touch /tmp/x'), 'spec.source.git.url', /must not start with "-"/],
  [git('ext::sh -c id'), 'spec.source.git.url', /remote helper such as "ext::"/],
  [git('fd::17/foo'), 'spec.source.git.url', /remote helper/],
  [git('http://example.com/a'), 'spec.source.git.url', /must be https:\/\/host\/path/],
  [git('git://example.com/a'), 'spec.source.git.url', /must be https/],
  [git('/srv/repo'), 'spec.source.git.url', /must be https/],
  [git('ssh://-oProxyCommand=id/x'), 'spec.source.git.url', /must be https/],
  [git('git@-oProxyCommand=id:x'), 'spec.source.git.url', /must be https/],
  [git('git@host:-x'), 'spec.source.git.url', /must be https/],
  [git('https://example.com/-x'), 'spec.source.git.url', /must be https/],
  [git('https://a b/c'), 'spec.source.git.url', /spaces/],
  [git('https://user:s3cret@example.com/a'), 'spec.source.git.url', /password; put it in a Secret/],
  [git('https://s3cret@example.com/a'), 'spec.source.git.url', /user name; put username and password in a Secret/],
  [git('file://host/a'), 'spec.source.git.url', /must not name a host/],
  [git('file:///srv/../etc'), 'spec.source.git.url', /must not contain "\.\."/],
  [git('file:///srv/%2e%2e/etc'), 'spec.source.git.url', /must not contain "\.\."/],
  [git('https://a/b', { branch: '-b' }), 'spec.source.git.branch', /must not start with "-"/],
  [git('https://a/b', { branch: 'a..b' }), 'spec.source.git.branch', /must be a valid git ref name/],
  [git('https://a/b', { tag: 'v1^{}' }), 'spec.source.git.tag', /must be a valid git ref name/],
  [git('https://a/b', { commit: 'abc' }), 'spec.source.git.commit', /40 or 64/],
  [git('https://a/b', { branch: 'a', tag: 'b' }), 'spec.source.git', /got branch and tag/],
  [git('https://a/b', { directory: '../x' }), 'spec.source.git.directory', /must not contain "\.\."/],
  [git('https://a/b', { directory: '/x' }), 'spec.source.git.directory', /must be relative/],
]
for (const [source, field, message] of cases) {
  test(`rejects ${JSON.stringify(source)?.slice(0, 90)}`, () => {
    const causes = validateSource(source)
    assert.equal(causes.length, 1, JSON.stringify(causes))
    assert.equal(causes[0]!.field, field)
    assert.match(causes[0]!.message, message)
    assert.doesNotMatch(causes[0]!.message, /s3cret/, 'invariant 9')
  })
}
