// The declarations of the package need @types/node, which TypeScript 6 and later do not load by themselves.
/// <reference types="node" preserve="true" />
/** As in `engines` of package.json, and in bin/oarlock.js for the command line. */
const minNodeMajor = 24

// Imported first by every published entry point: on an older Node the rest would fail later and name a missing function.
// In a browser, which can use the kinds of `oarlock/api`, there is no process.
const version = (globalThis as { process?: NodeJS.Process }).process?.versions?.node
if (version !== undefined && Number.parseInt(version, 10) < minNodeMajor)
  throw new Error(`oarlock requires Node.js ${minNodeMajor} or newer, but this is v${version}: install a newer one`)
