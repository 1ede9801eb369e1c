import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { packNpm } from '../../scripts/packages/npm.ts'
import { checkout, isOffline, ownEnv, workplace } from '../support/checkout.ts'
import { rangesAsVariables } from '../support/command-line.ts'
import { endsWithUs } from '../support/ends-with-us.ts'

const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)

interface Ended {
  readonly code: number
  readonly out: string
}

/** Runs the lines of a step as a runner does: in one shell that ends at the first failure. */
async function step(script: string, cwd: string, env: NodeJS.ProcessEnv): Promise<Ended> {
  const file = join(cwd, '.step.sh')
  await writeFile(file, script)
  return run('bash', ['--noprofile', '--norc', '-eo', 'pipefail', file], { cwd, env }).then(
    ({ stdout, stderr }) => ({ code: 0, out: stdout + stderr }),
    ({ code, stdout, stderr }) => ({ code, out: stdout + stderr }),
  )
}

/** A repository with a lab that passes and one that fails, and the variables of a job in it. */
async function repository(): Promise<{ readonly cwd: string; readonly env: NodeJS.ProcessEnv }> {
  const cwd = await workplace()
  endsWithUs(cwd)
  await mkdir(join(cwd, 'labs'))
  await cp(join(root, 'examples/two-pcs/two-pcs.lab.yaml'), join(cwd, 'labs/good.lab.yaml'))
  const bad = `lab: bad
nodes: { PC1: { kind: pc }, PC2: { kind: pc } }
links: [{ ends: [PC1, PC2] }]
checks:
  - { on: PC1, type: show ip, expect: never, within: 1s }
`
  await writeFile(join(cwd, 'labs/bad.lab.yaml'), bad)
  const service = { RUNNER_TEMP: cwd, CI_PROJECT_DIR: cwd, PATCHBAY_PC_ENGINE: 'embedded' }
  // The registry and the cache of npm are those of this machine.
  const ofNpm = { npm_config_userconfig: join(homedir(), '.npmrc'), npm_config_cache: join(homedir(), '.npm') }
  const home = { HOME: cwd, XDG_CONFIG_HOME: join(cwd, 'config'), ...ofNpm, npm_config_prefer_offline: 'true' }
  return { cwd, env: { ...ownEnv, ...home, ...service, ...rangesAsVariables() } }
}

test('the steps of the action for GitHub test the labs of a repository, and keep what a failed one leaves', async (context) => {
  const source = await checkout()
  const action = parse(await readFile(join(source, 'packaging/ci/action.yml'), 'utf8'))
  const { cwd, env: own } = await repository()
  const summary = join(cwd, 'summary.md')
  const files = { GITHUB_STEP_SUMMARY: summary, GITHUB_ACTION_PATH: join(source, 'packaging/ci') }
  const env = { ...own, GITHUB_ACTIONS: 'true', GITHUB_WORKSPACE: cwd, ...files }
  const given: Readonly<Record<string, string>> = { files: 'labs/*.lab.yaml' }
  const inputs = new Map(
    Object.entries<{ default?: string }>(action.inputs).map(([name, input]) => [
      name,
      given[name] ?? input.default ?? '',
    ]),
  )
  const filled = (text: string) => text.replace(/\$\{\{ inputs\.(\w+) \}\}/g, (_, name) => inputs.get(name) ?? '')
  let last: Ended | undefined
  for (const { if: only, run: script, env: variables = {}, shell } of action.runs.steps) {
    if (only === "inputs.packages != ''" && inputs.get('packages') === '') continue
    expect(shell).toBe('bash')
    const its = Object.fromEntries(Object.entries<string>(variables).map(([name, text]) => [name, filled(text)]))
    last = await step(script, cwd, { ...env, ...its })
    if (isOffline(last.out)) return context.skip('no network, and the packages are not in the cache of npm')
    if (last.code !== 0) break
  }
  expect(last).toMatchObject({ code: 1, out: expect.stringContaining('2 labs, ') })
  expect(last?.out).toMatch(/\n::error file=labs\/bad\.lab\.yaml,line=5,title=bad%3A PC1%3A show ip::/)
  expect(await readFile(summary, 'utf8')).toContain('| bad | PC1&#58; show ip | ❌ failed |')
  expect((await readdir(join(cwd, 'patchbay-report'))).sort()).toEqual(['failed', 'junit.xml'])
  expect(await readdir(join(cwd, 'patchbay-report/failed'))).toEqual(['bad'])
})

test('the job for GitLab installs the package, tests the labs, and reports; the feature for containers installs the same', async () => {
  const { cwd, env: own } = await repository()
  const pack = await packNpm(join(cwd, 'build'))
  await mkdir(join(cwd, 'packages'))
  await cp(pack, join(cwd, 'packages/patchbay.tgz'))
  const prefix = join(cwd, 'global')
  const path = { PATH: `${prefix}/bin:${own.PATH}`, npm_config_prefix: prefix }
  const template = parse(await readFile(join(root, 'packaging/ci/patchbay.gitlab-ci.yml'), 'utf8'))
  const job = template['.patchbay-test']
  const variables = Object.entries<string>(job.variables).map(([name, text]) => [
    name,
    text.replace('$CI_PROJECT_DIR', cwd),
  ])
  const env = {
    ...own,
    ...Object.fromEntries(variables),
    ...path,
    GITLAB_CI: 'true',
    LAB_FILES: 'labs/*.lab.yaml',
    LAB_PACKAGE: 'packages/patchbay.tgz',
  }
  const tested = await step([...job.before_script, ...job.script].join('\n'), cwd, env)
  expect(tested).toMatchObject({ code: 1, out: expect.stringMatching(/section_start:\d+:two-pcs_\d/) })
  expect(await step(job.after_script.join('\n'), cwd, env)).toMatchObject({ code: 0 })
  expect(await readFile(join(cwd, job.artifacts.reports.junit), 'utf8')).toContain('<testsuite name="bad"')

  const feature = join(cwd, 'feature')
  await cp(join(root, 'packaging/ci/devcontainer'), feature, { recursive: true })
  await cp(pack, join(feature, 'patchbay.tgz'))
  const options = JSON.parse(await readFile(join(feature, 'devcontainer-feature.json'), 'utf8')).options
  const given = { PACKAGE: options.package.default, EMULATORS: options.emulators.default }
  const other = { PATH: `${cwd}/other/bin:${own.PATH}`, npm_config_prefix: join(cwd, 'other') }
  const { stdout } = await run(join(feature, 'install.sh'), { cwd, env: { ...own, ...other, ...given } })
  expect(stdout).toMatch(/\d+\.\d+\.\d+\n$/)
})
