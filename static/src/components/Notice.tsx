/**
 * Messages in the page: notices, errors, and empty states.
 *
 * Notice: `tone` ("info", "warning", "danger"); `title?`, `children?`, `error?`, `actions?`.
 * ErrorDetails: `code`, `requestId`.
 * ErrorNote: a notice for a failed request.
 */
import type { ComponentChildren } from "preact";
import type { ApiError } from "../api/client.ts";
import { Button } from "./Button.tsx";
import { Icon } from "./Icon.tsx";
import { texts } from "../texts/texts.ts";

/** Explains what happened and what to do, with details of a failure. */
export function Notice(
  { tone, title, children, error, actions }: {
    tone: "info" | "warning" | "danger";
    title?: string;
    children?: ComponentChildren;
    error?: ApiError;
    actions?: ComponentChildren;
  },
) {
  return (
    <div class={`notice ${tone}`} role={tone === "danger" ? "alert" : "status"}>
      {tone !== "info" && <Icon name="warning" />}
      <div class="notice-body">
        {title && <p class="notice-title">{title}</p>}
        {error && <p>{error.message}</p>}
        {error?.issues.map((issue) => <p key={issue.path}>{issue.path}: {issue.message}</p>)}
        {children && <p>{children}</p>}
        {error?.requestId && <ErrorDetails code={error.code} requestId={error.requestId} />}
        {actions && <div class="actions-row">{actions}</div>}
      </div>
    </div>
  );
}

/** Details for bug reports. */
export function ErrorDetails({ code, requestId }: { code: string; requestId: string }) {
  return (
    <details class="error-details">
      <summary>{texts.details}</summary>
      <code>{code} · {texts.requestId(requestId)}</code>
    </details>
  );
}

/** A failure of a request. The user's input stays. */
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

/** A title, a sentence, and a place for the next step. */
export function EmptyState(
  { title, text, level = 2, children }: { title: string; text?: string; level?: 2 | 3; children?: ComponentChildren },
) {
  const Heading = level === 2 ? "h2" : "h3";
  return (
    <div class="empty-state">
      <Heading>{title}</Heading>
      {text && <p>{text}</p>}
      {children && <div class="actions-row">{children}</div>}
    </div>
  );
}
