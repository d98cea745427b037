/** What can be pasted into a shell or a client, told from advice in words. */

const SQL = /^(?:[A-Z]{3,}|DO)\s/;
const PROGRAMS = /^(?:sudo )?(?:risso|mysql\w*|mariadb[\w-]*|script\/\w+|du|df|ls|ps|ss|ip|top|free|kill|mount|umount|iostat|pidstat|vmstat|mpstat|dmesg|sysctl|systemctl|journalctl|timedatectl|chronyc|chown|chmod|setcap|tail|lsof|ethtool|numactl|swapoff|swapon)\s/;
// A command in a sentence is a sentence.
const WORDS = /\b(?:shows?|makes|continues|says|lists) (?:what|those|one|from|how|who|which)\b|; and |, or |, then |\?$/;

/** Whether a remedy is a command or statements, so that copying it is of use. */
export function isCommand(text: string): boolean {
  return (SQL.test(text) || PROGRAMS.test(text)) && !(WORDS.test(text) && !text.startsWith('risso serve'));
}
