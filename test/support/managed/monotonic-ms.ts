/** CLOCK_MONOTONIC, the same for all processes of a machine. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6
