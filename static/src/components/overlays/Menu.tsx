/**
 * A button with a menu: a popover, or a sheet on phones.
 *
 * Props: `label` (name of the button and the menu), `items` (each with `label`, `onSelect` or `href`; `icon?`, `hint?`,
 * `isDanger?`, `isChecked?`, `isDisabled?`; "line" between groups); `icon?` or `children?` (content of the button),
 * `class?` (of the button), `isDisabled?`. Keys: arrows, Home, End, a letter jumps; Escape and Tab close. Focus returns to the button
 * before `onSelect` runs.
 */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useStore } from "../../state/store.ts";
import { downloadFile, needsFetch } from "../ApiFile.tsx";
import { Icon, type IconName } from "../Icon.tsx";
import { useMedia } from "../hooks.ts";
import { Sheet } from "./Dialog.tsx";

/** The width below which menus are bottom sheets. */
export const PHONE_QUERY = "(max-width: 719px)";

/** One menu item. */
export interface MenuItem {
  label: string;
  icon?: IconName;
  /** Shown at the end of the row: a shortcut, a state. */
  hint?: string;
  onSelect?: () => void;
  /** Makes the item a link. */
  href?: string;
  isDanger?: boolean;
  /** Makes the item one of several choices. */
  isChecked?: boolean;
  isDisabled?: boolean;
}

/** The button and, while open, its menu. */
export function Menu(
  { label, items, icon = "more", class: className = "icon-button quiet", isDisabled, children }: {
    label: string;
    items: readonly (MenuItem | "line")[];
    icon?: IconName;
    class?: string;
    isDisabled?: boolean;
    children?: ComponentChildren;
  },
) {
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  // Pressing the button closes the popover before the click arrives, which must not open it again.
  const wasOpen = useRef(false);
  const isPhone = useMedia(PHONE_QUERY);
  const close = () => setOpen(false);
  const choose = (item: MenuItem) => {
    setOpen(false);
    button.current?.focus();
    item.onSelect?.();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class={className}
        title={label}
        aria-label={label}
        aria-haspopup="menu"
        disabled={isDisabled}
        aria-expanded={isOpen}
        onPointerDown={() => wasOpen.current = isOpen}
        onClick={(event) => {
          setOpen(event.detail === 0 ? !isOpen : !wasOpen.current);
          wasOpen.current = false;
        }}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" || isOpen) return;
          event.preventDefault();
          setOpen(true);
        }}
      >
        {children ?? <Icon name={icon} />}
      </button>
      {isOpen && (isPhone
        ? (
          <Sheet title={label} onClose={close}>
            <MenuRows label={label} items={items} onChoose={choose} onLeave={close} />
          </Sheet>
        )
        : (
          <MenuPopover anchor={button.current} onClose={close}>
            <MenuRows label={label} items={items} onChoose={choose} onLeave={close} />
          </MenuPopover>
        ))}
    </>
  );
}

function MenuPopover(
  { anchor, onClose, children }: { anchor: HTMLElement | null; onClose: () => void; children: ComponentChildren },
) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const popover = element.current;
    if (!popover || !anchor) return;
    let isGone = false;
    popover.showPopover();
    const follow = () => positionPopover(popover, anchor);
    follow();
    const close = () => {
      if (!isGone) onClose();
    };
    const onToggle = (event: Event) => {
      if ((event as ToggleEvent).newState === "closed") close();
    };
    popover.addEventListener("toggle", onToggle);
    globalThis.addEventListener("resize", follow);
    globalThis.addEventListener("scroll", follow, true);
    return () => {
      isGone = true;
      const hadFocus = popover.contains(document.activeElement);
      popover.removeEventListener("toggle", onToggle);
      globalThis.removeEventListener("resize", follow);
      globalThis.removeEventListener("scroll", follow, true);
      if (hadFocus && anchor.isConnected) anchor.focus({ preventScroll: true });
    };
  }, []);
  return <div ref={element} class="menu-popover" popover="auto">{children}</div>;
}

function MenuRows(
  { label, items, onChoose, onLeave }: {
    label: string;
    items: readonly (MenuItem | "line")[];
    onChoose: (item: MenuItem) => void;
    onLeave: () => void;
  },
) {
  const list = useRef<HTMLDivElement>(null);
  const rows =
    () => [...list.current?.querySelectorAll<HTMLElement>("[role^=menuitem]:not([aria-disabled=true])") ?? []];
  const onKeyDown = (event: KeyboardEvent) => {
    const all = rows();
    const at = all.findIndex((row) => row === document.activeElement);
    const to = getStep(event.key, at, all);
    if (event.key === "Tab") onLeave();
    if (to === undefined) return;
    event.preventDefault();
    all[to]?.focus();
  };
  return (
    <div ref={list} class="menu" role="menu" aria-label={label} onKeyDown={onKeyDown}>
      {items.map((item, index) => {
        if (item === "line") return <hr key={index} class="menu-line" />;
        return <MenuRow key={index} item={item} isFirst={index === 0} onChoose={onChoose} />;
      })}
    </div>
  );
}

/** Returns the row that a key moves to; undefined for other keys. */
function getStep(key: string, at: number, rows: HTMLElement[]): number | undefined {
  if (key === "ArrowDown") return (at + 1) % rows.length;
  if (key === "ArrowUp") return (at <= 0 ? rows.length : at) - 1;
  if (key === "Home") return 0;
  if (key === "End") return rows.length - 1;
  if (key.length !== 1 || key === " ") return undefined;
  const order = [...rows.slice(at + 1), ...rows.slice(0, at + 1)];
  const found = order.find((row) => row.textContent?.trim().toLowerCase().startsWith(key.toLowerCase()));
  return found && rows.indexOf(found);
}

function MenuRow(
  { item, isFirst, onChoose }: { item: MenuItem; isFirst: boolean; onChoose: (item: MenuItem) => void },
) {
  const store = useStore();
  const { icon, isChecked, isDisabled = false } = item;
  const shared = {
    class: item.isDanger ? "menu-row danger" : "menu-row",
    role: isChecked === undefined ? "menuitem" as const : "menuitemradio" as const,
    "aria-checked": isChecked,
    "aria-disabled": isDisabled,
    tabIndex: -1,
    // Popovers and dialogs both focus the element with `autofocus`.
    autofocus: isFirst,
    onClick: () => !isDisabled && onChoose(item),
  };
  const inside = (
    <>
      {isChecked === undefined
        ? icon && <Icon name={icon} />
        : <span class="menu-mark">{isChecked && <Icon name="check" />}</span>}
      <span class="menu-label">{item.label}</span>
      {item.hint && <span class="menu-hint">{item.hint}</span>}
    </>
  );
  const { href } = item;
  if (href !== undefined && needsFetch(href)) {
    const download = () => {
      if (isDisabled) return;
      onChoose(item);
      void downloadFile(store, href);
    };
    return <button type="button" {...shared} onClick={download}>{inside}</button>;
  }
  if (href !== undefined) return <a href={href} {...shared}>{inside}</a>;
  return <button type="button" {...shared}>{inside}</button>;
}

/** Distance to the control and to the window's edges, in px. */
const GAP_PX = 4;
const EDGE_PX = 8;

/**
 * Places `floating` (fixed) below `anchor`, or above if there is more space, with its end at the anchor's end if it
 * fits.
 */
function positionPopover(floating: HTMLElement, anchor: HTMLElement): void {
  const at = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = floating;
  const view = document.documentElement;
  const isRtl = getComputedStyle(anchor).direction === "rtl";
  const preferred = isRtl ? at.left : at.right - width;
  const below = at.bottom + GAP_PX;
  const hasRoom = below + height <= view.clientHeight - EDGE_PX;
  const left = Math.max(
    EDGE_PX,
    Math.min(preferred < EDGE_PX ? at.left : preferred, view.clientWidth - width - EDGE_PX),
  );
  const top = hasRoom ? below : Math.max(EDGE_PX, at.top - GAP_PX - height);
  floating.style.left = `${left}px`;
  floating.style.top = `${top}px`;
}
