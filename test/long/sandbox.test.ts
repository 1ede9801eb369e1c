import { byOther, byRoot, confinementTests } from '../support/confinement-tests.ts'

confinementTests([
  { by: 'bubblewrap', ...byOther },
  { by: 'namespaces', ...byRoot },
])
