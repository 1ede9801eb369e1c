import colors from 'picocolors'

/** Colours of standard output: none unless it is a terminal. picocolors would colour the files and pipes of CI systems. */
export const colours = colors.createColors(process.stdout.isTTY === true && colors.isColorSupported)
