/** A name and its value, in a list of facts. */
export const Fact = ({ name, value }: { name: string; value: string }) => (
  <>
    <dt>{name}</dt>
    <dd dir="auto">{value}</dd>
  </>
)
