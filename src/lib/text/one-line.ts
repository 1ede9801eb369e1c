/**
 * Characters that one line of text does not have, as the inside of a character class of a regular expression: those that control a terminal (C0, DEL, C1),
 * line and paragraph separators, those that change the direction of text (UAX 9), and the byte order mark.
 */
export const notInLine = '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff'

/** The same up to 0.1.0: texts that were made by then stay as they are. */
export const notInEarlierLine = '\\u0000-\\u001f\\u007f'

/** One line of text, in a schema. */
export const oneLine = `^[^${notInLine}]*$`
