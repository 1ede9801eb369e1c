/** Most tasks of a lab, and most checks that one of them names. */
export const maxTasks = 100
export const maxTaskChecks = 100
/** Longest text of a task, and most characters of the texts of all tasks together. */
export const maxTaskText = 10_000
export const maxTaskTexts = 200_000
export const maxPoints = 1000
