/**
 * @module controllers: Oarlock's controllers, each a pure decider with a thin shell around it.
 * `stack/` decides which Run a Stack needs next; `dispatch/` which Worker gets which Run, and how many Workers a pool has;
 * `simulate/` plays the same deciders on virtual time.
 * In: objects as informers hold them. Out: writes to the API server. Not done here: executing Runs (`execution/`) and
 * composing processes (`app/`). Import a module's own index.ts; this file exports nothing.
 */
export {}
