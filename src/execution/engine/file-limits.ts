/** Above the limits of the state store, which reports the size; below what would exhaust the memory of a worker. */
export const maxStateBytes = 256 * 1024 * 1024
export const maxPlanBytes = 256 * 1024 * 1024
