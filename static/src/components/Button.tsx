/**
 * Buttons with a label or with an icon only.
 *
 * Button: `children`; `onClick?`, `kind?` ("primary", "plain", "quiet"), `icon?`, `type?`, `isDisabled?`, `isBusy?`,
 * `isExpanded?`, `form?`, `label?`.
 * LinkButton: `href`, `children`; `kind?`, `icon?`, `onClick?`.
 * IconButton: `icon`, `label`; `onClick?`, `kind?`, `isPressed?`, `isExpanded?`, `isDisabled?`, `type?`.
 */
import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./Icon.tsx";
import { useEffect, useState } from "preact/hooks";
import { answerInTime } from "../state/app/browser_parts.ts";
import { useStore } from "../state/store.ts";
import { texts } from "../texts/texts.ts";

/** Props of a button with a label. */
interface ButtonProps {
  children: ComponentChildren;
  onClick?: () => void;
  kind?: "primary" | "plain" | "quiet";
  icon?: IconName;
  type?: "button" | "submit";
  isDisabled?: boolean;
  /** The action is running: the button ignores further clicks. */
  isBusy?: boolean;
  /** Whether the element that it controls is shown. */
  isExpanded?: boolean;
  /** Id of the form to submit, for a button outside of it. */
  form?: string;
  /** Accessible name, if the visible label is ambiguous. */
  label?: string;
}

/** A button with a label. */
export function Button(props: ButtonProps) {
  const { kind = "plain", type = "button", isDisabled = false, isBusy = false } = props;
  return (
    <button
      type={type}
      class={`button ${kind}`}
      onClick={props.onClick}
      disabled={isDisabled || isBusy}
      form={props.form}
      aria-busy={isBusy}
      aria-expanded={props.isExpanded}
      aria-label={props.label}
    >
      {isBusy ? <span class="spinner" aria-hidden="true" /> : props.icon && <Icon name={props.icon} />}
      <span>{props.children}</span>
    </button>
  );
}

/** A link styled as a button. */
export function LinkButton(
  { href, children, kind = "plain", icon, label, onClick }: {
    href: string;
    children: ComponentChildren;
    kind?: ButtonProps["kind"];
    icon?: IconName;
    /** The accessible name, if the text alone is ambiguous. */
    label?: string;
    /** Called before the link is followed. */
    onClick?: () => void;
  },
) {
  return (
    <a class={`button ${kind}`} href={href} aria-label={label} onClick={onClick}>
      {icon && <Icon name={icon} />}
      <span>{children}</span>
    </a>
  );
}

/** A button with an icon only. Its label is its accessible name and its tooltip. */
export function IconButton(
  { icon, label, onClick, kind = "quiet", isPressed, isExpanded, isDisabled, type = "button" }: {
    icon: IconName;
    label: string;
    onClick?: () => void;
    kind?: "quiet" | "primary";
    isPressed?: boolean;
    isExpanded?: boolean;
    isDisabled?: boolean;
    type?: "button" | "submit";
  },
) {
  return (
    <button
      type={type}
      class={`icon-button ${kind}`}
      title={label}
      aria-label={label}
      aria-pressed={isPressed}
      aria-expanded={isExpanded}
      disabled={isDisabled}
      onClick={onClick}
    >
      <Icon name={icon} />
    </button>
  );
}

/** How long the button confirms, in milliseconds. */
const SHOW_MS = 1500;

/** A button that copies a text to the clipboard. */
export function CopyButton({ text }: { text: string }) {
  const store = useStore();
  const [isDone, setDone] = useState(false);
  useEffect(() => {
    if (!isDone) return;
    const timer = setTimeout(() => setDone(false), SHOW_MS);
    return () => clearTimeout(timer);
  }, [isDone]);
  const onClick = async () => {
    try {
      await copyText(text);
      setDone(true);
    } catch {
      store.toasts.show(texts.chat.copyFailed, { isError: true });
    }
  };
  return (
    <IconButton
      icon={isDone ? "check" : "copy"}
      label={isDone ? texts.chat.copied : texts.chat.copy}
      onClick={onClick}
    />
  );
}

/**
 * Copies a text to the clipboard. Where there is no clipboard API, as on plain HTTP, or it refuses or doesn't answer, it uses
 * the old command.
 *
 * @throws {Error}
 */
export async function copyText(text: string): Promise<void> {
  try {
    if (globalThis.navigator.clipboard) {
      return await answerInTime(globalThis.navigator.clipboard.writeText(text));
    }
  } catch {
    // The old command may be allowed.
  }
  const focused = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  if (!isCopied) throw new Error("Can't copy: the browser refused");
}
