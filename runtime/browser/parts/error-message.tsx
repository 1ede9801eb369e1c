/** Why something was refused; screen readers say it at once. An empty text shows nothing. */
export const ErrorMessage = ({ text }: { text: string }) =>
  text === '' ? null : (
    <p class="reason" role="alert" dir="auto">
      {text}
    </p>
  )
