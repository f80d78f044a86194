/**
 * @module controllers/replication: copies of home's cluster-scoped objects in a partition. Start reading at `decide-copy.ts`.
 * In: objects of home, copies in this partition. Out: copies that are created, changed or deleted.
 * Not done here: which kinds are copied (`gateway/kinds/kind-classes.ts`), and requests of users.
 */
export { copyAnnotations, decideCopy, decideReport, establishedPrefix, homeGenerationOf, notEstablishedIn } from './decide-copy.ts'
export { enqueueCopies, type ReplicationOptions, replication } from './replication.ts'
