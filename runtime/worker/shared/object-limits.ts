import { defaultLabLimits, type LabLimits } from '../../../src/labs/lab/lab-limits.ts'

/** How much clients can store in Durable Objects, which have 128 MB of memory each. */
export const objectLimits: LabLimits = { ...defaultLabLimits, open_labs_mb: 48, templates_mb: 8 }
