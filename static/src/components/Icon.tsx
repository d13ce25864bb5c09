/** The icons of the page, drawn on a 20 by 20 grid. */

const PATHS = {
  plus: "M10 4v12M4 10h12",
  menu: "M3.500 6h13M3.500 10h13M3.500 14h13",
  sidebar:
    "M4.500 4h11A1.500 1.500 0 0 1 17 5.500v9a1.500 1.500 0 0 1-1.500 1.500h-11A1.500 1.500 0 0 1 3 14.500v-9A1.500 1.500 0 0 1 4.500 4zM8 4v12",
  gear:
    "M4 6.500h6M14 6.500h2M4 13.500h2M10 13.500h6M12 4.500a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM8 11.500a2 2 0 1 0 0 4 2 2 0 0 0 0-4z",
  send: "M10 16V4.500M5 9.500l5-5 5 5",
  stop: "M6.500 5.500h7a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1h-7a1 1 0 0 1-1-1v-7a1 1 0 0 1 1-1z",
  copy:
    "M8 7h7.500A1.500 1.500 0 0 1 17 8.500V15.500A1.500 1.500 0 0 1 15.500 17H8.500A1.500 1.500 0 0 1 7 15.500V8a1 1 0 0 1 1-1zM4.500 13A1.500 1.500 0 0 1 3 11.500v-7A1.500 1.500 0 0 1 4.500 3h7A1.500 1.500 0 0 1 13 4.500",
  check: "M4 10.500l4 4 8-9",
  trash: "M4 6h12M8 6V4h4v2M5.500 6l.7 10h7.600l.7-10M8.500 9v4.500M11.500 9v4.500",
  redo: "M16 4v4.500h-4.500M15.700 8.200A6 6 0 1 0 16 11.500",
  forward: "M5 4.500v11l6-5.500zM11 4.500v11l6-5.500z",
  down: "M10 4v11.500M5 11l5 5 5-5",
  close: "M5 5l10 10M15 5L5 15",
  wrap: "M3 5h14M3 10h10.500a2.500 2.500 0 0 1 0 5H10m2-2-2 2 2 2M3 15h3.500",
  warning: "M10 3.500 17.500 16.500h-15zM10 8.500v4M10 14.500v.2",
  search: "M9 4a5 5 0 1 0 0 10A5 5 0 0 0 9 4zM12.700 12.700 16.500 16.500",
  plug: "M7 3v4M13 3v4M5 7h10v3a5 5 0 0 1-10 0zM10 15v3",
  chat:
    "M4 5.500A1.500 1.500 0 0 1 5.500 4h9A1.500 1.500 0 0 1 16 5.500v6a1.500 1.500 0 0 1-1.500 1.500H9l-4 3.500V13A1.500 1.500 0 0 1 4 11.500z",
  more: "M4.500 10h.1M9.950 10h.1M15.400 10h.1",
  back: "M12 4.500 6.500 10l5.500 5.500",
} as const;

/** Names of the icons there are. */
export type IconName = keyof typeof PATHS;

/** One icon. It says nothing to a screen reader; the control around it has the name. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" data-icon={name}>
      <path d={PATHS[name]} />
    </svg>
  );
}
