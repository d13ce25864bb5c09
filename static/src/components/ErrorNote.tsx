/**
 * A failure beside its cause: what was tried, what was found, what to do; the request id under Details.
 *
 * Props: `title` (what was tried), `error` (ApiError); `onRetry?()`, `actions?` (more buttons), `children?` (advice).
 */
import type { ComponentChildren } from "preact";
import type { ApiError } from "../api/client.ts";
import { texts } from "../texts/texts.ts";
import { Button } from "./Button.tsx";
import { Notice } from "./Notice.tsx";

/** What the person typed is none of its business: it stays where it is. */
export function ErrorNote(
  { title, error, onRetry, actions, children }: {
    title: string;
    error: ApiError;
    onRetry?: () => void;
    actions?: ComponentChildren;
    children?: ComponentChildren;
  },
) {
  return (
    <Notice
      tone="danger"
      title={title}
      error={error}
      actions={(onRetry || actions) && (
        <>
          {onRetry && <Button onClick={onRetry}>{texts.retry}</Button>}
          {actions}
        </>
      )}
    >
      {children}
    </Notice>
  );
}
