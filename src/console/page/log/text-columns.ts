const tabColumns = 8
const plain = /^[ -~]*$/
const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u
const combining = /\p{M}|\u200d|\ufe0f/u

/** How many columns of a fixed-width font a text has: an estimate for what is not ASCII, as fonts differ. */
export function textColumns(text: string): number {
  if (plain.test(text)) return text.length
  let columns = 0
  for (const character of text) {
    if (character === '\t') columns += tabColumns - (columns % tabColumns)
    else if (!combining.test(character)) columns += wide.test(character) ? 2 : 1
  }
  return columns
}
