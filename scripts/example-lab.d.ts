import type { Plugin } from 'esbuild'
import type { ExampleLab } from '../runtime/browser/examples/example-lab.ts'

export declare const exampleLabs: Plugin
export declare function exampleLab(text: string): ExampleLab
