import { byOther, byRoot, confinementTests } from '../support/confinement-tests.ts'

confinementTests([
  { by: 'bubblewrap', file: 124, ...byOther },
  { by: 'namespaces', file: 125, ...byRoot },
])
