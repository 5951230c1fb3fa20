import{f as e}from"./chunk-YTT3ZB6P.js";import"./chunk-WOT6VMZA.js";e();
