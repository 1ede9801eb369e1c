/** Shown in place of a lab that is gone: the reason, and a link to the list of labs. */
export const Ended = ({ text }: { text: string }) => (
  <main class="ended">
    <p dir="auto">{text}</p>
    <a class="button" href="#/">
      All labs
    </a>
  </main>
)
