/** The values of -o. */
export const outputFormats = ['json', 'yaml', 'wide', 'name'] as const
export type OutputFormat = (typeof outputFormats)[number]
