/**
 * Which versions of the CLI send a journal.
 *
 * The rule: a minor release is in this table when its real CLI was run against this endpoint and against the replay of its journal, and its
 * recorded conversations are in `test/pulumi/recordings`. A pre-release or build of a listed minor release counts as that release. All others are
 * offered checkpoints, which need nothing but storing: a CLI may send a kind of entry that did not exist when Oarlock was released (kinds 8 and 9
 * appeared without a new journal version), and a journal that cannot be replayed stops the Stack. Checkpoints cost more bytes (28.8 MB instead of
 * 675 KB for 100 resources) and lose nothing.
 * To add a version: record it (`test/pulumi/README.md`), run the tests, add it here and in docs/pulumi.md.
 */
export const testedCliVersions: readonly string[] = ['3.260']

/** The newest version of the journal API that this endpoint stores. */
export const journalVersion = 1

/** The version of the CLI in `pulumi-cli/1 (v3.260.0; linux; cmd=up)`, without `v`; undefined if it has none. */
export function parseCliVersion(userAgent: string | undefined): string | undefined {
  return /^pulumi-cli\/1 \(v?(\d{1,6}\.\d{1,6}\.\d{1,6}[0-9A-Za-z.+-]{0,100});/.exec(userAgent ?? '')?.[1]
}

/** True if the journal of this CLI is known to be understood. */
export function isJournalTested(cliVersion: string | undefined, tested: readonly string[] = testedCliVersions): boolean {
  return cliVersion !== undefined && tested.some(minor => cliVersion.startsWith(`${minor}.`))
}
