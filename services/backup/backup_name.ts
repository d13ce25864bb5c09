/** File names of backups. */

/** Names of the scheduled backups. */
export const DAILY_NAME = /^parlor-\d{4}-\d\d-\d\dT\d{6}Z\.backup$/;
/** Names of the backups that Parlor makes, scheduled ones and others. */
export const BACKUP_NAME = /^parlor-(\d{4}-\d\d-\d\d)T(\d\d)(\d\d)(\d\d)Z(?:-asked)?\.backup$/;

/** Builds the name of a backup. @param isAsked Made on request: not deleted by the rotation. */
export function getBackupName(nowMs: number, isAsked: boolean): string {
  const time = new Date(nowMs).toISOString().slice(0, 19).replaceAll(":", "");
  return `parlor-${time}Z${isAsked ? "-asked" : ""}.backup`;
}

/** Returns when a backup was made, in milliseconds since 1970. @param name Matches `BACKUP_NAME`. */
export function backupTimeOf(name: string): number {
  const [, date, hour, minute, second] = BACKUP_NAME.exec(name)!;
  return Date.parse(`${date}T${hour}:${minute}:${second}Z`);
}
