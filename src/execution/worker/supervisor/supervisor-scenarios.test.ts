import { join } from 'node:path'
import { describe } from 'node:test'
import { testTranscripts } from '../../../../test/support/transcripts.ts'
import { HostPlayer } from '../simulation/host-player.testing.ts'
import { SimulatedHost } from '../simulation/simulated-host.testing.ts'

// The commands are explained in host-player.testing.ts. Indented lines are messages, at the time they are sent; one takes 1 ms.
describe("the supervisor's protocol on virtual time", () =>
  testTranscripts(join(import.meta.dirname, 'testdata'), () => new HostPlayer(new SimulatedHost({ showsMessages: true }))))
