import type { LabProject } from '../../../src/client/patchbay.ts'
import { nameKey } from '../../../src/model/lab/names.ts'
import { counted } from '../parts/counted.ts'
import { nameOfAnybody } from '../state/session.ts'

type StudentLab = Pick<LabProject, 'class' | 'present'>

/** Whether the student of a lab has it open. `unknown`: somebody has, and the service asks nobody who they are. */
export function presenceOf({ class: of, present = [] }: StudentLab): 'there' | 'away' | 'unknown' {
  if (present.some((it) => nameKey(it) === nameKey(of?.student ?? ''))) return 'there'
  return present.includes(nameOfAnybody) ? 'unknown' : 'away'
}

/** Who has the lab of a student open. */
export function presenceText(lab: StudentLab): string {
  const state = presenceOf(lab)
  const own = nameKey(lab.class?.student ?? '')
  const others = (lab.present ?? [])
    .filter((it) => nameKey(it) !== own)
    .map((it) => (it === nameOfAnybody ? 'somebody' : it))
  if (state === 'there') return others.length === 0 ? 'is there' : `is there, with ${others.join(', ')}`
  if (others.length === 0) return 'is not there'
  const list = `${others.join(', ')} ${others.length > 1 ? 'are' : 'is'}`
  return state === 'unknown' ? `${list} there` : `is not there; ${list}`
}

/** How many students of a class have their labs open, and in how many labs somebody is of whom that is not known. */
export function countPresent(labs: readonly StudentLab[]): string {
  const states = labs.map(presenceOf)
  const count = (wanted: string) => states.filter((it) => it === wanted).length
  const unknown = count('unknown')
  const there = `${count('there')} of ${counted(labs.length, 'student')} there`
  return unknown === 0 ? there : `${there}, somebody unknown in ${counted(unknown, 'lab')}`
}
