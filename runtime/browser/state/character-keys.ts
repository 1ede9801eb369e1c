import { stored } from './stored.ts'

/** Whether keys of one character, such as `S`, are commands: users of speech input turn them off (WCAG 2.2, 2.1.4). */
export const characterKeys = stored('character-keys', ['on', 'off'])
