import type { Plugin } from 'esbuild'
import type { ExampleLab } from '../runtime/browser/examples/example-lab.ts'

export declare const exampleLabs: Plugin
/** The text without comments, and without checks that no task needs. */
export declare function withoutComments(text: string): string
export declare function exampleLab(text: string): ExampleLab
