import type { BuildOptions } from 'esbuild'

export declare function bundle(
  outdir: string,
  more?: BuildOptions & { build?: string; others?: Readonly<Record<string, string>> },
): Promise<void>
export declare function bundleInPlace(outdir: string): Promise<void>
export declare function isFresh(outdir: string): Promise<boolean>
